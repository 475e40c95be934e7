package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/demo/screen"
	"github.com/pelotech/open-terrain/e2e/history"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// redraw is how often the table is drawn while nothing happens: waits count down.
	redraw = 250 * time.Millisecond
	// quiet is how long the vm-operator must have written nothing to have nothing to do.
	quiet = 2 * time.Second
)

// watcher shows the history while it grows.
type watcher struct {
	history *history.Recorder
	out     *screen.Screen
	ledger  *ledger.Ledger
	began   time.Time
	taken   int
	told    map[types.UID]screen.Row // what the last line said, without a terminal
	written time.Time                // when the vm-operator last changed something
}

func newWatcher(recorder *history.Recorder, out *screen.Screen) *watcher {
	return &watcher{history: recorder, out: out, ledger: ledger.New(), began: time.Now(), told: map[types.UID]screen.Row{}}
}

// anew watches what comes from now on, beside the one that watches all: the table has room for so much.
func (w *watcher) anew() *watcher {
	next := newWatcher(w.history, w.out)
	next.began, next.taken = w.began, w.taken
	return next
}

// until shows what happens until a condition holds.
func (w *watcher) until(ctx context.Context, holds func() bool) error {
	for {
		w.catchUp()
		if err := w.out.Err(); err != nil {
			return err
		}
		if holds() {
			return nil
		}
		next, cancel := context.WithTimeout(ctx, redraw)
		_, err := w.history.Wait(next, w.last(), func(history.Event) bool { return true })
		cancel()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("not done yet: %w", ctx.Err())
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return err
		}
	}
}

func (w *watcher) last() int64 {
	if w.taken == 0 {
		return 0
	}
	return w.history.All()[w.taken-1].Revision
}

// catchUp takes in what has happened and shows it.
func (w *watcher) catchUp() {
	for _, event := range w.history.All()[w.taken:] {
		w.ledger.Take(event)
		w.taken++
		if ledger.WrittenByVMOperator(event) {
			w.written = event.Seen
		}
		if !w.out.Live() {
			w.tell()
		}
	}
	w.out.Show(w.out.Table(w.ledger, time.Now()))
}

// calm shows what happens until the vm-operator has written nothing for a while.
func (w *watcher) calm(ctx context.Context) error {
	since := time.Now()
	return w.until(ctx, func() bool { return time.Since(since) > quiet && time.Since(w.written) > quiet })
}

// tell says each change of an image or a virtual machine as one line. Its place in the queue and its slot are told with other
// changes only: the place changes with every image that leaves, and the slot is taken just before Syncing and given up just after.
func (w *watcher) tell() {
	for _, image := range w.ledger.Images() {
		w.tellRow(image.UID, screen.RowOf(w.ledger, image, time.Now()))
	}
	for _, machine := range w.ledger.Machines() {
		w.tellRow(machine.UID, screen.MachineRowOf(w.ledger, machine))
	}
	for _, space := range w.ledger.Spaces() {
		w.tellRow(space.UID, screen.SpaceRowOf(space))
	}
}

func (w *watcher) tellRow(uid types.UID, row screen.Row) {
	before := w.told[uid]
	before.Position, before.Slot = row.Position, row.Slot
	if row == before || row.Message == "" {
		return
	}
	w.told[uid] = row
	w.out.Say("%5.1fs  %s", time.Since(w.began).Seconds(), row.Line())
}

// ended is the number of images that have come to their end.
func (w *watcher) ended() int {
	n := 0
	for _, image := range w.ledger.Images() {
		if image.Ended() {
			n++
		}
	}
	return n
}

// ready is the number of virtual machines that are.
func (w *watcher) ready() int {
	n := 0
	for _, machine := range w.ledger.Machines() {
		if machine.Ready() {
			n++
		}
	}
	return n
}
