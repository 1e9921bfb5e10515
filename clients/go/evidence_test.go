package retryd

import (
	"fmt"
	"strings"
	"testing"
)

// evidenceRow is what a library makes of one failure, as it stands in evidence.json.
type evidenceRow struct {
	Category string `json:"category"`
	Evidence string `json:"evidence,omitempty"`
	Status   string `json:"status,omitempty"`
	How      string `json:"how"`
	Absent   string `json:"absent,omitempty"`
}

// TestEvidence holds evidence.json against what the kit really sends of each failure.
func TestEvidence(t *testing.T) {
	var rows map[string]map[string]evidenceRow
	readJSON(t, "clients/go/evidence.json", &rows)
	var file struct {
		About    string
		Failures []scenario
	}
	readJSON(t, "clients/scenarios/failures.json", &file)
	libraries := map[string]string{"grpc": "grpc-go", "http": "net/http"}
	for _, failure := range file.Failures {
		for _, over := range failure.Over {
			library := libraries[over]
			row, known := rows[library][failure.Name]
			delete(rows[library], failure.Name)
			t.Run(library+"/"+failure.Name, func(t *testing.T) {
				t.Parallel()
				if !known || row.How == "" {
					t.Errorf("evidence.json lacks the row, or how the library tells")
				}
				got := failure.play(t, adapters[over])
				if len(got.seen.Questions) == 0 {
					t.Fatal("nothing was asked")
				}
				sent := rowOf(got.seen.Questions[0].Context)
				sent.How = row.How
				if sent != row {
					t.Errorf("sent %+v, but evidence.json says %+v", sent, row)
				}
			})
		}
	}
	for library, left := range rows {
		for name := range left {
			t.Errorf("evidence.json: %s: no failure is named %q", library, name)
		}
	}
}

// rowOf is the part of a question that evidence.json tells.
func rowOf(context map[string]any) (row evidenceRow) {
	failure, _ := context["failure"].(map[string]any)
	row.Category = strings.TrimPrefix(fmt.Sprint(failure["category"]), "FAILURE_CATEGORY_")
	if evidence, given := context["evidence"].(string); given {
		row.Evidence = strings.TrimPrefix(evidence, "EVIDENCE_")
	}
	if code, given := failure["grpcCode"]; given {
		row.Status = fmt.Sprintf("grpc %v", code)
	}
	if status, given := failure["httpStatus"]; given {
		row.Status = fmt.Sprintf("http %v", status)
	}
	return row
}
