package fault

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/pelotech/open-terrain/e2e/fault/lab"
)

// row is what the plans of a story did.
type row struct {
	story                                     string
	writes, of, plans, struck, processes, red int
	took                                      time.Duration
}

func (r *row) add(result lab.Result, err error) {
	r.plans++
	r.struck += result.Struck
	r.processes += result.Lives
	r.took += result.Took
	if err != nil {
		r.red++
	}
}

func (r *row) seconds() string {
	return fmt.Sprintf("%.2f", r.took.Seconds()/float64(max(1, r.plans)))
}

var (
	rows   []row
	rowsMu sync.Mutex
)

// report a story: in the test's log, and in the table.
func report(t *testing.T, r row) {
	t.Helper()
	t.Logf("%s: %d writes, %d of %d plans, %d struck, %d processes, %s s a plan, %d red",
		r.story, r.writes, r.plans, r.of, r.struck, r.processes, r.seconds(), r.red)
	rowsMu.Lock()
	defer rowsMu.Unlock()
	rows = append(rows, r)
}

// TestMain writes the table when all is over.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := writeTable(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func writeTable() error {
	if len(rows) == 0 {
		return nil
	}
	text := table(rows)
	fmt.Fprintln(os.Stdout, text)
	if path := os.Getenv("OT_TABLE"); path != "" {
		return os.WriteFile(path, []byte(text), 0o600)
	}
	return nil
}

func table(rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(w io.Writer, cells ...any) {
		fmt.Fprintln(w, strings.TrimSuffix(fmt.Sprintf(strings.Repeat("%v\t", len(cells)), cells...), "\t"))
	}
	line(w, "story", "writes", "plans", "of", "struck", "processes", "s a plan", "red")
	total := row{story: "all"}
	for _, r := range rows {
		line(w, r.story, r.writes, r.plans, r.of, r.struck, r.processes, r.seconds(), r.red)
		total.writes, total.plans, total.of, total.red = total.writes+r.writes, total.plans+r.plans, total.of+r.of, total.red+r.red
		total.struck, total.processes, total.took = total.struck+r.struck, total.processes+r.processes, total.took+r.took
	}
	line(w, total.story, total.writes, total.plans, total.of, total.struck, total.processes, total.seconds(), total.red)
	_ = w.Flush() // to memory
	return text.String()
}
