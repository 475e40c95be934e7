package lab

import (
	"encoding/json"
	"time"

	"github.com/pelotech/open-terrain/e2e/faultproxy"
)

// Plan is what goes wrong in a story: the rules of each life of the operator. A life after the last one has none.
type Plan struct {
	Story string              `json:"story"`
	Lives [][]faultproxy.Rule `json:"lives"`
	// Kind of what goes wrong, wherever it does; a plan that was given has none.
	Kind Kind `json:"-"`
}

func (p Plan) String() string {
	line, err := json.Marshal(p)
	if err != nil {
		return err.Error()
	}
	return string(line)
}

func (p Plan) rules(life int) []faultproxy.Rule {
	if life < len(p.Lives) {
		return p.Lives[life]
	}
	return nil
}

// hung is how long a connection hangs before it breaks, and stale how long watches are silent.
const (
	hung  = 700 * time.Millisecond
	stale = 400 * time.Millisecond
	burst = 5
)

// Faults are the ways in which one write can go wrong.
func Faults() []Fault {
	return []Fault{
		{Kind{"killed before", Each}, faultproxy.Rule{When: faultproxy.SeverBefore}},
		{Kind{"killed after", Each}, faultproxy.Rule{When: faultproxy.Sever}},
		{Kind{"answer lost", Each}, faultproxy.Rule{When: faultproxy.After}},
		{Kind{"500, though done", Alike}, faultproxy.Rule{When: faultproxy.After, Code: 500}},
		{Kind{"500", Alike}, faultproxy.Rule{When: faultproxy.Before, Code: 500}},
		{Kind{"409", Each}, faultproxy.Rule{When: faultproxy.Before, Code: 409}},
		{Kind{"429", Alike}, faultproxy.Rule{When: faultproxy.Before, Code: 429}},
		{Kind{"hangs, breaks", Alike}, faultproxy.Rule{When: faultproxy.Before, Delay: hung}},
		{Kind{"hangs, breaks, though done", Alike}, faultproxy.Rule{When: faultproxy.After, Delay: hung}},
		{Kind{"500 in a row", Some}, faultproxy.Rule{When: faultproxy.Before, Code: 500, Times: burst}},
		{Kind{"409 in a row", Some}, faultproxy.Rule{When: faultproxy.Before, Code: 409, Times: burst}},
		{Kind{"answers lost in a row", Some}, faultproxy.Rule{When: faultproxy.After, Times: burst}},
	}
}

// watched are the resources that the operator watches for the sake of an image.
var watched = []string{
	"vmdiskimages", "datavolumes", "persistentvolumeclaims", "volumesnapshots", "volumesnapshotcontents", "leases", "configmaps",
}

// Single are all plans with one fault of a story with that many writes, in an order that is always the same.
func Single(story string, writes int) []Plan {
	var plans []Plan
	for n := 1; n <= writes; n++ {
		for _, fault := range Faults() {
			rule := fault.Rule
			rule.Nth = n
			plans = append(plans, Plan{Story: story, Lives: [][]faultproxy.Rule{{rule}}, Kind: fault.Kind})
		}
	}
	return plans
}

// Watches are the plans in which the operator hears late, or never, what happened to one kind after one of its writes.
func Watches(story string, writes int) []Plan {
	kinds := map[faultproxy.When]Kind{faultproxy.Stale: {"watch silent", Some}, faultproxy.Relist: {"watch expired", Some}}
	var plans []Plan
	for n := 1; n <= writes; n++ {
		for _, resource := range watched {
			for _, when := range []faultproxy.When{faultproxy.Stale, faultproxy.Relist} {
				rule := faultproxy.Rule{Nth: n, When: when, Watch: resource, Delay: stale}
				plans = append(plans, Plan{Story: story, Lives: [][]faultproxy.Rule{{rule}}, Kind: kinds[when]})
			}
		}
	}
	return plans
}

// Double are the plans in which the operator is killed at a write, and again at one of the first of its next life.
func Double(story string, writes int) []Plan {
	const soon = 3
	var plans []Plan
	for n := 1; n <= writes; n++ {
		for again := 1; again <= soon; again++ {
			for _, second := range []faultproxy.When{faultproxy.Sever, faultproxy.SeverBefore} {
				plans = append(plans, Plan{Story: story, Kind: Kind{"killed twice", Some}, Lives: [][]faultproxy.Rule{
					{{Nth: n, When: faultproxy.Sever}}, {{Nth: again, When: second}},
				}})
			}
		}
	}
	return plans
}

// linger is how long after a fault its consequences may come: the wait that the operator was told, and those that it
// adds with each failure in a row.
func (p Plan) linger() time.Duration {
	longest := time.Duration(0)
	for _, rules := range p.Lives {
		for _, rule := range rules {
			switch {
			case rule.Code == 429:
				longest = max(longest, 1300*time.Millisecond)
			case rule.Times > 1:
				longest = max(longest, 600*time.Millisecond)
			}
		}
	}
	return longest
}
