package policy_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// notation writes the IPv4 address in one of the ways that some program reads.
func notation(t *rapid.T, n uint32) string {
	if rapid.IntRange(0, 3).Draw(t, "six") == 0 {
		return rapid.SampledFrom([]string{
			fmt.Sprintf("[::ffff:%s]", dotted(n)), fmt.Sprintf("[::%s]", dotted(n)), fmt.Sprintf("[64:ff9b::%s]", dotted(n)),
			fmt.Sprintf("[::ffff:%x:%x]", n>>16, n&0xffff), fmt.Sprintf("[2002:%x:%x::]", n>>16, n&0xffff),
			fmt.Sprintf("[2001:0:1:1:0:0:%x:%x]", ^n>>16, ^n&0xffff),
		}).Draw(t, "embedded")
	}
	// The first parts are a byte each, the last one is all the rest.
	parts := rapid.IntRange(1, 4).Draw(t, "parts")
	var text []string
	for i := range parts - 1 {
		text = append(text, number(t, n>>(24-8*i)&0xff))
	}
	host := strings.Join(append(text, number(t, n&(1<<(8*(5-parts))-1))), ".")
	if rapid.Bool().Draw(t, "final dot") {
		host += "."
	}
	return host
}

func dotted(n uint32) string {
	return fmt.Sprintf("%d.%d.%d.%d", n>>24, n>>16&0xff, n>>8&0xff, n&0xff)
}

func number(t *rapid.T, n uint32) string {
	return fmt.Sprintf(rapid.SampledFrom([]string{"%d", "%d", "0x%x", "0X%X", "0%o", "000%o", "0x000%x"}).Draw(t, "base"), n)
}
