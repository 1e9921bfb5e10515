// Command ghz-html turns ghz's JSON report (stdin) into ghz's HTML report (stdout): ghz writes one format a run.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/bojand/ghz/printer"
	"github.com/bojand/ghz/runner"
)

func main() {
	if err := convert(); err != nil {
		fmt.Fprintln(os.Stderr, "ghz-html:", err)
		os.Exit(1)
	}
}

func convert() error {
	var report runner.Report
	if err := json.NewDecoder(os.Stdin).Decode(&report); err != nil {
		return err
	}
	pages := printer.ReportPrinter{Out: os.Stdout, Report: &report}
	return pages.Print("html")
}
