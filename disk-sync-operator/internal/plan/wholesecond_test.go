package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestARetryIsNeverEarlierThanItsTimeInStatus(t *testing.T) {
	second := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ at, want time.Time }{
		"a whole second stays":      {second, second},
		"a bit more is rounded up":  {second.Add(time.Nanosecond), second.Add(time.Second)},
		"nearly a second, likewise": {second.Add(999 * time.Millisecond), second.Add(time.Second)},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, wholeSecond(c.at)) })
	}
}
