package retryd

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// testbed is what `python -m testbed` says about itself; see clients/testbed/README.md.
var testbed struct {
	Control string            `json:"control"`
	Retryd  map[string]string `json:"retryd"`
	GRPC    map[string]string `json:"grpc"`
	HTTP    map[string]string `json:"http"`
}

// repository is its root, seen from this folder.
const repository = "../.."

func TestMain(m *testing.M) {
	stop, err := startTestbed()
	if err != nil {
		fmt.Fprintln(os.Stderr, "the testbed does not start:", err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

func startTestbed() (stop func(), err error) {
	python := fromEnvironment("TESTBED_PYTHON", "target/clients/venv/bin/python")
	retryd := fromEnvironment("RETRYD_BIN", "target/debug/retryd")
	for _, path := range []string{python, retryd} {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
	}
	command := exec.Command(python, "-m", "testbed", "--retryd", retryd)
	command.Env = append(os.Environ(), "PYTHONPATH="+fromRoot("clients"))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &testbed)
	}
	stop = func() {
		stdin.Close()
		_ = command.Wait()
	}
	if err != nil {
		stop()
	}
	return stop, err
}

func fromEnvironment(variable, otherwise string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return fromRoot(otherwise)
}

func fromRoot(path string) string {
	absolute, err := filepath.Abs(filepath.Join(repository, path))
	if err != nil {
		panic(err)
	}
	return absolute
}

// play is what the testbed saw of one run.
type play struct {
	Arrivals []struct {
		AtMs    float64           `json:"at_ms"`
		Headers map[string]string `json:"headers"`
	} `json:"arrivals"`
	Questions []struct {
		Context  map[string]any `json:"context"`
		Decision map[string]any `json:"decision"`
	} `json:"questions"`
	Acquires []exchange     `json:"acquires"`
	Releases []exchange     `json:"releases"`
	Usage    map[string]any `json:"usage"`
}

type exchange struct {
	Request  map[string]any `json:"request"`
	Response map[string]any `json:"response"`
}

// seen is what the testbed has seen of a run so far.
func seen(t *testing.T, run string) play {
	t.Helper()
	response, err := http.Get(testbed.Control + "/plays/" + run)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var p play
	decoder := json.NewDecoder(response.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

// eventually waits for something that happens in the background.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 500 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain: %s", what)
}

// startRetryd starts a real retryd with the policy, and tells its address.
func startRetryd(t *testing.T, policy string) string {
	t.Helper()
	response, err := http.Post(testbed.Control+"/retryds", "text/plain", strings.NewReader(policy))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("no retryd: %v %s", err, body)
	}
	var started struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal(body, &started); err != nil {
		t.Fatal(err)
	}
	return started.Address
}

// readJSON reads a file of the repository that all languages share.
func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(fromRoot(path))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// differs tells everything in which got does not hold what is wanted of it: a part of it, as
// tests/vectors/README.md says.
func differs(path string, wanted, got any) []string {
	if object, ok := wanted.(map[string]any); ok {
		if got, ok := got.(map[string]any); ok {
			var found []string
			for key, wanted := range object {
				found = append(found, differs(path+"."+key, wanted, got[key])...)
			}
			return found
		}
	}
	if list, ok := wanted.([]any); ok {
		if got, ok := got.([]any); ok && len(got) == len(list) {
			var found []string
			for i, wanted := range list {
				found = append(found, differs(fmt.Sprintf("%s[%d]", path, i), wanted, got[i])...)
			}
			return found
		}
	}
	if got == nil && isDefault(wanted) || fmt.Sprintf("%T %v", got, got) == fmt.Sprintf("%T %v", wanted, wanted) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %v, expected %v", path, got, wanted)}
}

// isDefault tells whether proto-JSON leaves the value out.
func isDefault(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case bool:
		return !value
	case json.Number:
		return value == "0"
	case string:
		return value == ""
	}
	return false
}

var runs struct {
	sync.Mutex
	number int
}

// newRun names a run that no other has.
func newRun(adapter string) string {
	runs.Lock()
	defer runs.Unlock()
	runs.number++
	return fmt.Sprintf("go-%s-%d", adapter, runs.number)
}
