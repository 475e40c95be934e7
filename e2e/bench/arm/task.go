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
	// resource and list are those of the objects.
	resource() string
	list() client.ObjectList
	// done is what an object has in its JSON when it is done, and nothing has before.
	done() string
	isDone(object any) bool
	// floor is the path of the floor's executable, and its flags.
	floor(l *Lab) (string, []string)
	// ignored are the resources whose history is not looked at.
	ignored() []string
	// judge a history: what is wrong with it makes the run void.
	judge(run *Run, events []history.Event)
}
