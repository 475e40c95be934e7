package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// list is a flag of values that are separated by commas.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value. It takes the place of the default.
func (l *list) Set(value string) error {
	*l = nil
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*l = append(*l, part)
		}
	}
	return nil
}

// pairs is a flag of key=value, separated by commas.
type pairs map[string]string

// String implements flag.Value.
func (p *pairs) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(*p)) {
		parts = append(parts, key+"="+(*p)[key])
	}
	return strings.Join(parts, ",")
}

// Set implements flag.Value. It takes the place of the default.
func (p *pairs) Set(value string) error {
	var parts list
	if err := parts.Set(value); err != nil {
		return err
	}
	*p = pairs{}
	for _, part := range parts {
		key, text, ok := strings.Cut(part, "=")
		if !ok || key == "" {
			return errors.New("not key=value: " + part)
		}
		(*p)[key] = text
	}
	return nil
}
