package arm

import (
	"context"

	"github.com/pelotech/open-terrain/e2e/history"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// task is the work that an arm does: what is created, what has to be around it, and how it is judged.
type task interface {
	// furnish makes what is there from the beginning: charts, classes.
	furnish(ctx context.Context, l *Lab) error
	// simulate starts what a real cluster has beside the operator.
	simulate(ctx context.Context, l *Lab) error
	// prepare makes what one load needs, before the clock starts.
	prepare(ctx context.Context, l *Lab, prefix string, objects int) error
	// object is the i-th that is created.
	object(l *Lab, prefix string, i int) client.Object
	// path and list are those of the objects that are watched, of which there are so many for each one that is created.
	path() string
	list() client.ObjectList
	each() int
	// done is what the watch tells of an object that is done, and of none before.
	done() string
	// isDone says so of an object of the load with this prefix.
	isDone(prefix string, object client.Object) bool
	// floor is the path of the floor's executable, and its flags.
	floor(l *Lab) (string, []string)
	// ignored are the resources whose history is not looked at.
	ignored() []string
	// judge a history: what is wrong with it makes the run void.
	judge(l *Lab, run *Run, events []history.Event)
}
