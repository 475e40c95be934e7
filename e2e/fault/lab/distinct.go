package lab

import (
	"math/rand/v2"
	"slices"

	"github.com/pelotech/open-terrain/e2e/faultproxy"
)

// Fault is one way in which a write can go wrong, at whichever write.
type Fault struct {
	Kind Kind
	Rule faultproxy.Rule
}

// Kind of what goes wrong.
type Kind struct {
	Name  string
	Reach Reach
}

// Reach says at which writes of a story a kind of fault is worth its time.
type Reach string

const (
	// Each write: what is there when the next process begins, or the operator looks again, is another thing each time.
	Each Reach = "at each write"
	// Alike are writes of one verb and resource: the operator treats the answer in the same place, so that one stands for all.
	Alike Reach = "at one of each verb and resource"
	// Some plans of a story: of such kinds there are too many.
	Some Reach = "at some writes"
)

// some is how many plans of a kind that reaches some writes are tried in each story.
const some = 2

// Distinct leaves out the plans that are likely to show what others show: of writes that are alike one is chosen, and of
// kinds of which there are too many some plans.
func Distinct(plans []Plan, writes []faultproxy.Request, random *rand.Rand) []Plan {
	plans = slices.Clone(plans)
	random.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	type group struct{ kind, alike string }
	seen := map[group]int{}
	return slices.DeleteFunc(plans, func(plan Plan) bool {
		of, most := group{kind: plan.Kind.Name}, 1
		switch plan.Kind.Reach {
		case Each:
			return false
		case Alike:
			of.alike = plan.alike(writes)
		case Some:
			most = some
		}
		seen[of]++
		return seen[of] > most
	})
}

// alike names the kind of the write that the plan strikes first; the reference may have had none of that number.
func (p Plan) alike(writes []faultproxy.Request) string {
	n := p.Lives[0][0].Nth
	if n > len(writes) {
		return ""
	}
	write := writes[n-1]
	return write.Verb + " " + write.Resource + "/" + write.Subresource
}
