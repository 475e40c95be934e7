package screen

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/history"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func nothing(string) string { return "" }

func TestNewLooksAtTheOutput(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	assert.False(t, New(&bytes.Buffer{}, nothing).Live(), "not even a file")
	assert.False(t, New(file, nothing).Live(), "a file is no terminal")
}

func TestWithoutATerminalNothingButLines(t *testing.T) {
	var out bytes.Buffer
	s := New(&out, nothing)
	s.Show([]string{"table"})
	s.Say("%s", s.Style(red, "line"))
	s.Leave()
	assert.Equal(t, "line\n", out.String())
}

func TestOnATerminalTheTableIsRedrawnInPlace(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{out: &out, live: true, color: true, size: func() (int, int) { return 6, 40 }}
	s.Show([]string{"123456789", s.Style(green, "ok")})
	assert.Equal(t, hideCursor+"12345"+clearLine+"\n\x1b[32mok\x1b[0m"+clearLine+"\n"+clearBelow, out.String(), "cut to the width")
	out.Reset()
	s.Say("above")
	assert.True(t, strings.HasPrefix(out.String(), "\x1b[2A\r"+clearBelow+"above\n"), "%q", out.String())
	assert.Contains(t, out.String(), "12345", "the table follows the line")
	out.Reset()
	s.Leave()
	s.Say("below")
	assert.Equal(t, showCursor+"below\n", out.String(), "the table stays where it is")
}

type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAReaderThatIsGoneIsAnError(t *testing.T) {
	s := New(deaf{}, nothing)
	require.NoError(t, s.Err())
	s.Say("anything")
	assert.ErrorContains(t, s.Err(), "broken pipe")
}

func TestRows(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	l := ledger.New()
	image := func(revision int64, name string, status otv1alpha1.VMDiskImageStatus) {
		o := &otv1alpha1.VMDiskImage{Status: status}
		o.Namespace, o.Name, o.UID = "lab", name, types.UID(name)
		l.Take(history.Event{Key: history.Key{Namespace: "lab", Name: name}, Revision: revision, Object: o})
	}
	backingOff := metav1.NewTime(now.Add(3 * time.Second))
	image(1, "first", otv1alpha1.VMDiskImageStatus{Phase: otv1alpha1.PhaseQueued, Ticket: 1})
	image(2, "new", otv1alpha1.VMDiskImageStatus{})
	image(3, "waits", otv1alpha1.VMDiskImageStatus{
		Phase: otv1alpha1.PhaseQueued, Attempts: 1, NextAttemptTime: &backingOff, Progress: "12%", Message: strings.Repeat("x", 200),
		Conditions: []metav1.Condition{{Type: otv1alpha1.ConditionSynced, Reason: otv1alpha1.ReasonBackingOff}},
	})
	want := []Row{
		{Name: "lab/first", Phase: "Queued", Position: "#1"},
		{Name: "lab/new", Phase: "new", Position: "#2"},
		{Name: "lab/waits", Phase: "Queued", Position: "in 3s", Attempts: "1/3", Message: strings.Repeat("x", 200)},
	}
	for i, known := range l.Images() {
		assert.Equal(t, want[i], RowOf(l, known, now))
	}
	assert.Equal(t, "lab/first          Queued       queue #1", want[0].Line())
	assert.Contains(t, want[2].Line(), "xx…", "a long message is cut")
	table := New(&bytes.Buffer{}, nothing).Table(l, now)
	assert.Contains(t, table[1], "IMAGE")
	assert.Contains(t, table[4], "lab/waits")
	assert.Contains(t, table[len(table)-1], "limit 4, syncing 0")
}

func TestMachinesStandBelowTheImagesThatTheyWaitFor(t *testing.T) {
	l, lab := ledger.New(), func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name)}
	}
	take := func(revision int64, o client.Object) {
		l.Take(history.Event{Key: history.Key{Namespace: "lab", Name: o.GetName()}, Revision: revision, Object: o})
	}
	take(1, &otv1alpha1.VMDiskImage{ObjectMeta: lab("first")})
	for i, name := range []string{"waits", "runs"} {
		machine := &otv1alpha1.VirtualMachine{ObjectMeta: lab(name)}
		machine.Spec.VMDiskImageRef.Name = "first"
		take(int64(2+i), machine)
	}
	runs := &otv1alpha1.VirtualMachine{ObjectMeta: lab("runs")}
	runs.Status.Phase, runs.Status.Message = otv1alpha1.VirtualMachineReady, "The guest is running"
	take(4, runs)
	disk := &cdiv1.DataVolume{ObjectMeta: lab("runs-disk"), Status: cdiv1.DataVolumeStatus{Phase: cdiv1.Succeeded}}
	disk.OwnerReferences = []metav1.OwnerReference{{Name: "runs", UID: "runs", Controller: new(true)}}
	take(5, disk)
	assert.Equal(t, Row{Name: "lab/waits", Phase: "new", Position: "#1"}, MachineRowOf(l, l.Machines()[0]))
	row := MachineRowOf(l, l.Machines()[1])
	assert.Equal(t, "lab/runs           Ready        queue #1, disk cloned: The guest is running", row.Line())
	table := New(&bytes.Buffer{}, nothing).Table(l, time.Now())
	assert.Equal(t, "VIRTUAL MACHINE  PHASE  QUEUE  DISK                 MESSAGE", table[3])
	assert.Equal(t, "lab/runs         Ready  #1     cloned               The guest is running", table[5])
}

func TestBar(t *testing.T) {
	assert.Equal(t, "████░░░░░░  42%", bar("42.10%"))
	assert.Equal(t, "N/A", bar("N/A"))
	assert.Equal(t, "", bar(""))
}
