package queue

// Takeable lists the slots that may be taken, lowest first; taking all of them is allowed, too. Held says of each slot
// that is known, by number, whether it is held (a slot beyond the list is free); limit is how many may be held.
func Takeable(held []bool, limit int) []int {
	var slots []int
	above := 0 // held slots above the one looked at
	for _, h := range held {
		if h {
			above++
		}
	}
	for i := 0; i+above < limit; i++ {
		if i < len(held) && held[i] {
			above--
			continue
		}
		slots = append(slots, i)
	}
	return slots
}

// MayKeep says whether the slot, which is held, may pass from one holder to the next without being free in between.
func MayKeep(held []bool, slot, limit int) bool {
	above := 0
	for i := slot + 1; i < len(held); i++ {
		if held[i] {
			above++
		}
	}
	return slot+above < limit
}
