package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// Print writes the table for people.
func (r *Result) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ROW\tFIGURE\tTARGET\tMEASURED\tFLOOR\tRATIO\tVERDICT")
	for _, f := range r.Figures {
		ratio := ""
		if f.Ratio != 0 {
			ratio = fmt.Sprintf("%.2f", f.Ratio)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Row, f.What, f.Target, f.Measured, f.Floor, ratio, f.Verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, r.Reference)
	return err
}

// Save writes results.json.
func (r *Result) Save(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

// Has says whether any figure has this verdict.
func (r *Result) Has(v Verdict) bool {
	return slices.ContainsFunc(r.Figures, func(f Figure) bool { return f.Verdict == v })
}
