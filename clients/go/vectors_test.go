package retryd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TestVectors plays every portable case of tests/vectors over a connection.
func TestVectors(t *testing.T) {
	paths, err := filepath.Glob(fromRoot("tests/vectors/*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	var played atomic.Int32
	t.Run("files", func(t *testing.T) {
		for _, path := range paths {
			file := strings.TrimSuffix(filepath.Base(path), ".json")
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				played.Add(playFile(t, file))
			})
		}
	})
	fmt.Printf("vectors: %d sequences played\n", played.Load())
}

func playFile(t *testing.T, file string) (played int32) {
	var v vectors
	readJSON(t, "tests/vectors/"+file+".json", &v)
	if len(v.Cases) == 0 {
		t.Fatal("no cases")
	}
	shared := connect(t, startRetryd(t, v.policy()))
	for place, c := range v.Cases {
		if len(c.Needs) != 0 {
			continue
		}
		for turn, steps := range c.plays() {
			conn := shared
			if c.Alone {
				conn = connect(t, startRetryd(t, v.policy()))
			}
			p := player{
				t: t, conn: conn, base: v.Base, revision: v.revision(), named: map[string]string{},
				tenant: fmt.Sprintf("%s-%d-%d", file, place, turn), operation: c.Operation, title: c.Name,
			}
			p.play(steps)
			played++
		}
	}
	return played
}

func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// vectors is one file; see tests/vectors/README.md.
type vectors struct {
	About  string         `json:"about"`
	Policy []string       `json:"policy"`
	Base   map[string]any `json:"base"`
	Cases  []vectorCase   `json:"cases"`
}

type vectorCase struct {
	Name      string           `json:"name"`
	Source    string           `json:"source"`
	Needs     []string         `json:"needs"`
	Alone     bool             `json:"alone"`
	Clock     string           `json:"clock"`
	Draw      json.Number      `json:"draw"`
	Operation string           `json:"operation"`
	Steps     []step           `json:"steps"`
	Before    []step           `json:"before"`
	Context   map[string]any   `json:"context"`
	Contexts  []map[string]any `json:"contexts"`
	Expect    map[string]any   `json:"expect"`
	Error     *refusal         `json:"error"`
}

// step is one call, or several ones that are held against the same terms.
type step struct {
	Ask     calls `json:"ask"`
	Report  calls `json:"report"`
	Reports calls `json:"reports"`
	Acquire calls `json:"acquire"`
	Release calls `json:"release"`
	Budget  calls `json:"budget"`
	List    calls `json:"list"`
	// Not portable.
	Advance string   `json:"advance"`
	Reload  []string `json:"reload"`

	Repeat  int            `json:"repeat"`
	Granted *int           `json:"granted"`
	As      string         `json:"as"`
	Expect  map[string]any `json:"expect"`
	Error   *refusal       `json:"error"`
}

type refusal struct {
	Code       string   `json:"code"`
	Reason     string   `json:"reason"`
	Violations []string `json:"violations"`
}

// calls is a call, or a list of them.
type calls []map[string]any

func (c *calls) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if text[0] == '[' {
		return decoder.Decode((*[]map[string]any)(c))
	}
	*c = calls{nil}
	return decoder.Decode(&(*c)[0])
}

func (v vectors) policy() string { return strings.Join(v.Policy, "\n") + "\n" }

func (v vectors) revision() string {
	sum := sha256.Sum256([]byte(v.policy()))
	return hex.EncodeToString(sum[:6])
}

// plays are the steps as they are; or the history and one of the contexts, for each of them.
func (c vectorCase) plays() [][]step {
	if len(c.Steps) != 0 {
		return [][]step{c.Steps}
	}
	contexts := c.Contexts
	if c.Context != nil {
		contexts = append(contexts, c.Context)
	}
	var plays [][]step
	for _, context := range contexts {
		ask := step{Ask: calls{context}, Expect: c.Expect, Error: c.Error}
		plays = append(plays, append(c.Before[:len(c.Before):len(c.Before)], ask))
	}
	return plays
}

// merged lies one object over the other, at the top level only; null removes a key.
func merged(under, over map[string]any) map[string]any {
	sum := map[string]any{}
	maps.Copy(sum, under)
	maps.Copy(sum, over)
	maps.DeleteFunc(sum, func(_ string, value any) bool { return value == nil })
	return sum
}
