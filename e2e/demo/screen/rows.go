package screen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

const (
	bold   = 1
	dim    = 2
	red    = 31
	green  = 32
	yellow = 33
	cyan   = 36

	barWidth = 10
	longest  = 140 // of a message, in a line of its own
)

// Row is what is shown of an image or a virtual machine.
type Row struct {
	Name, Phase, Position, Progress, Attempts, Slot, Message string
	// Disk is a virtual machine's, and Members how many of a workspace are ready: they stand where an image has its progress.
	Disk, Members string
}

var (
	header  = Row{"IMAGE", "PHASE", "QUEUE", "PROGRESS", "TRY", "SLOT", "MESSAGE", "", ""}
	machine = Row{"VIRTUAL MACHINE", "PHASE", "QUEUE", "", "", "", "MESSAGE", "DISK", ""}
	space   = Row{"WORKSPACE", "PHASE", "QUEUE", "", "", "", "MESSAGE", "", "MEMBERS"}
)

// RowOf puts an image into words, as it stands at a time.
func RowOf(l *ledger.Ledger, image *ledger.Image, now time.Time) Row {
	st := image.Status
	row := Row{Name: image.Key.String(), Phase: string(st.Phase), Progress: st.Progress, Message: st.Message}
	if st.Phase == "" {
		row.Phase = "new"
	}
	if position := l.Position(image); position > 0 {
		row.Position = "#" + strconv.Itoa(position)
	} else if st.NextAttemptTime != nil {
		row.Position = fmt.Sprintf("in %.0fs", max(0, st.NextAttemptTime.Sub(now).Seconds()))
	}
	if st.Attempts > 0 {
		row.Attempts = fmt.Sprintf("%d/%d", st.Attempts, l.Policy.MaxAttempts())
	}
	if st.Phase != otv1alpha1.PhaseSyncing && st.Phase != otv1alpha1.PhaseSnapshotting && st.Phase != otv1alpha1.PhaseSucceeded {
		row.Progress = ""
	}
	if len(image.Slots) > 0 {
		row.Slot = strings.TrimPrefix(strings.Join(image.Slots, ","), otv1alpha1.DiskSyncSlotPrefix)
	}
	return row
}

// MachineRowOf puts a virtual machine into words. Its place in the queue is its image's.
func MachineRowOf(l *ledger.Ledger, machine *ledger.Machine) Row {
	row := Row{Name: machine.Key.String(), Phase: string(machine.Status.Phase), Message: machine.Status.Message}
	if row.Phase == "" {
		row.Phase = "new"
	}
	if image := l.Image(machine.Image); image != nil && l.Position(image) > 0 {
		row.Position = "#" + strconv.Itoa(l.Position(image))
	}
	if disk := l.Disk(machine); disk != nil {
		row.Disk = "cloning"
		if disk.Status.Phase == cdiv1.Succeeded {
			row.Disk = "cloned"
		}
	}
	return row
}

// SpaceRowOf puts a workspace into words.
func SpaceRowOf(space *ledger.Space) Row {
	st := space.Status
	row := Row{Name: space.Name, Phase: string(st.Phase), Message: st.Message}
	if row.Phase == "" {
		row.Phase = "new"
	}
	if st.Queue != nil {
		row.Position = "#" + strconv.Itoa(int(st.Queue.Position))
	}
	if st.VirtualMachines != "" {
		row.Members = "VMs " + st.VirtualMachines + " containers " + st.Containers
	}
	return row
}

// Table is the state of all images, virtual machines and workspaces, in the order of their creation. It has few empty lines: with all of
// the demo it must fit into a terminal of 24.
func (s *Screen) Table(l *ledger.Ledger, now time.Time) []string {
	rows, heads := []Row{header}, map[int]bool{0: true}
	for _, image := range l.Images() {
		row := RowOf(l, image, now)
		row.Progress = bar(row.Progress)
		rows = append(rows, row)
	}
	if machines := l.Machines(); len(machines) > 0 {
		heads[len(rows)] = true
		rows = append(rows, machine)
		for _, machine := range machines {
			rows = append(rows, MachineRowOf(l, machine))
		}
	}
	if spaces := l.Spaces(); len(spaces) > 0 {
		heads[len(rows)] = true
		rows = append(rows, space)
		for _, space := range spaces {
			rows = append(rows, SpaceRowOf(space))
		}
	}
	widths := [6]int{}
	for _, row := range rows {
		for i, cell := range row.cells() {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	lines := []string{""}
	for i, row := range rows {
		lines = append(lines, s.line(row, widths, heads[i]))
	}
	return append(lines, s.Style(dim, fmt.Sprintf("limit %d, syncing %d, slots held %d, retryLimit %d", l.Policy.Concurrency, l.Syncing(), l.Held(), l.Policy.RetryLimit)))
}

func (s *Screen) line(row Row, widths [6]int, isHeader bool) string {
	var text strings.Builder
	for i, cell := range row.cells() {
		padded := cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+2)
		if i == 1 && !isHeader {
			padded = s.Style(colourOf(row.Phase), padded)
		}
		text.WriteString(padded)
	}
	text.WriteString(row.Message)
	if isHeader {
		return s.Style(bold, text.String())
	}
	return text.String()
}

func (r Row) cells() []string {
	return []string{r.Name, r.Phase, r.Position, r.Progress + r.Disk + r.Members, r.Attempts, r.Slot}
}

// Line is a row as one line of a log; empty cells are left out.
func (r Row) Line() string {
	var parts strings.Builder
	for _, part := range [][2]string{{"queue", r.Position}, {"try", r.Attempts}, {"slot", r.Slot}, {"progress", r.Progress}, {"disk", r.Disk}, {"ready", r.Members}} {
		if part[1] != "" {
			parts.WriteString(" " + part[0] + " " + part[1] + ",")
		}
	}
	message := []rune(r.Message)
	if len(message) > longest {
		message = append(message[:longest], '…')
	}
	text := fmt.Sprintf("%-18s %-12s", r.Name, r.Phase) + strings.TrimSuffix(parts.String(), ",")
	return strings.TrimSuffix(text+": "+string(message), ": ")
}

func colourOf(phase string) int {
	switch phase {
	case string(otv1alpha1.PhaseSucceeded), string(otv1alpha1.VirtualMachineReady):
		return green
	case string(otv1alpha1.PhaseFailed):
		return red
	case string(otv1alpha1.PhaseSyncing), string(otv1alpha1.PhaseSnapshotting):
		return cyan
	case string(otv1alpha1.PhaseQueued), string(otv1alpha1.VirtualMachineProvisioning):
		return yellow
	}
	return dim
}

// bar draws a percentage; what is none stays as it is.
func bar(progress string) string {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(progress, "%"), 64)
	if err != nil || progress == "" {
		return progress
	}
	full := min(barWidth, int(percent/100*barWidth+0.5))
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full) + fmt.Sprintf(" %3.0f%%", percent)
}
