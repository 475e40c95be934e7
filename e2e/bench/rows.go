package bench

import (
	"slices"
	"time"

	"github.com/pelotech/open-terrain/e2e/bench/arm"
)

// Row is a load and the highest ratio to the floor that is allowed under it.
type Row struct {
	Name  string   `json:"name"`
	Load  arm.Load `json:"load"`
	Ratio float64  `json:"ratio"`
	// Quick rows are run with --quick, too.
	Quick bool `json:"-"`
}

// Limits that hold for every row, and for what comes after the largest.
const (
	maxWrites    = 7
	maxEvents    = 3
	maxGrowth    = 1.15
	maxMemory    = 1.5
	slotsBound   = 1.15
	serverBound  = 1.5
	writers      = 8
	manyImages   = 10000
	fewImages    = 100
	manySlots    = 64
	growthRepeat = 5
)

// Rows are all rows. Images scales the largest one down; the others stay as they are.
func Rows(images int) []Row {
	load := func(images, slots int, duration time.Duration) arm.Load {
		return arm.Load{Images: images, Slots: slots, Writers: writers, Import: duration}
	}
	return []Row{
		{Name: "short", Load: load(40, 4, 200*time.Millisecond), Ratio: slotsBound, Quick: true},
		{Name: "long", Load: load(20, 4, 7*time.Second), Ratio: slotsBound, Quick: true},
		{Name: "thousand", Load: load(1000, 16, 0), Ratio: serverBound},
		{Name: "many", Load: load(images, manySlots, 0), Ratio: serverBound},
	}
}

// Growth is the row that the largest is compared with.
const Growth = "growth"

func growthLoad() arm.Load {
	return arm.Load{Images: fewImages, Slots: manySlots, Writers: writers}
}

// choose the rows with these names; none means all.
func choose(rows []Row, names []string, quick bool) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool {
		if len(names) > 0 {
			return !slices.Contains(names, r.Name)
		}
		return quick && !r.Quick
	})
}
