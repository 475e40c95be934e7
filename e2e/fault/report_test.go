package fault

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
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

	tally tally
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

// worlds is how many there are at a time, unless -parallel says another number: two cores are idle for half of the time of
// two.
const worlds = 3

// TestMain writes the table when all is over.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(worlds)) // it is a number
	}
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
	text := table(rows) + "\n" + kindTable(rows)
	fmt.Fprintln(os.Stdout, text)
	if path := os.Getenv("OT_TABLE"); path != "" {
		return os.WriteFile(path, []byte(text), 0o600)
	}
	return nil
}

func line(w io.Writer, cells ...any) {
	fmt.Fprintln(w, strings.TrimSuffix(fmt.Sprintf(strings.Repeat("%v\t", len(cells)), cells...), "\t"))
}

// kindTable says how many plans of each kind there are, and how many of them were tried.
func kindTable(rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line(w, "fault", "plans", "distinct", "of", "make fault tries it")
	sum := tally{tried: kinds{}, distinct: kinds{}, all: kinds{}}
	for _, r := range rows {
		sum.add(r.tally)
	}
	for _, kind := range sum.all.sorted() {
		line(w, kind.Name, sum.tried[kind], sum.distinct[kind], sum.all[kind], kind.Reach)
	}
	line(w, "all", sum.tried.sum(), sum.distinct.sum(), sum.all.sum())
	_ = w.Flush() // to memory
	return text.String()
}

func table(rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
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
