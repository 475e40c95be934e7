package vmfault

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// row is what the plans of a story did.
type row struct {
	story                                     string
	writes, of, plans, struck, processes, red int
	took                                      time.Duration
}

func (r *row) add(res result, err error) {
	r.plans++
	r.struck += res.struck
	r.processes += res.lives
	r.took += res.took
	if err != nil {
		r.red++
	}
}

func (r *row) cells() []any {
	return []any{r.story, r.writes, r.plans, r.of, r.struck, r.processes, fmt.Sprintf("%.2f", r.took.Seconds()/float64(max(1, r.plans))), r.red}
}

var rows []row

// report a story: in the test's log, and in the table.
func report(t *testing.T, r row) {
	t.Helper()
	t.Logf("%s: %d writes, %d of %d plans, %d struck, %d processes, %s s a plan, %d red", r.cells()[:1][0], r.writes, r.plans, r.of, r.struck, r.processes, r.cells()[6], r.red)
	rows = append(rows, r)
}

// TestMain writes the table when all is over.
func TestMain(m *testing.M) {
	code := m.Run()
	if len(rows) > 0 {
		if err := writeTable(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// writeTable to the output, and after whatever OT_TABLE holds.
func writeTable() error {
	text := table()
	fmt.Fprintln(os.Stdout, text)
	path := os.Getenv("OT_TABLE")
	if path == "" {
		return nil
	}
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(path, append(before, text...), 0o600)
}

func table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(cells []any) {
		fmt.Fprintln(w, strings.TrimSuffix(fmt.Sprintf(strings.Repeat("%v\t", len(cells)), cells...), "\t"))
	}
	line([]any{"story of machines", "writes", "plans", "of", "struck", "processes", "s a plan", "red"})
	total := row{story: "all"}
	for _, r := range rows {
		line(r.cells())
		total.writes, total.plans, total.of, total.red = total.writes+r.writes, total.plans+r.plans, total.of+r.of, total.red+r.red
		total.struck, total.processes, total.took = total.struck+r.struck, total.processes+r.processes, total.took+r.took
	}
	line(total.cells())
	_ = w.Flush() // to memory
	return text.String()
}
