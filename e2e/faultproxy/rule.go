package faultproxy

import (
	"fmt"
	"time"
)

// When says at which moment a rule strikes.
type When string

const (
	// Before answers without asking the API server.
	Before When = "before"
	// After lets the write take effect and loses the answer: the operator gets Code, or a cut connection.
	After When = "after"
	// Sever lets the write take effect, calls Options.OnSever, and never answers anything again.
	Sever When = "sever"
	// SeverBefore is Sever without letting the write take effect.
	SeverBefore When = "sever-before"
	// Hold parks the request before the API server sees it, until Release or Drop.
	Hold When = "hold"
	// Slow only delays.
	Slow When = "slow"
	// Stale lets the write pass; from it on the watches of Rule.Watch say nothing for Delay.
	Stale When = "stale"
	// Relist is Stale, but then the watches end, and what happened meanwhile shows in a new list only.
	Relist When = "relist"
)

// Rule is one fault. Empty match fields match every write that is counted; a write that is not counted, such as the
// leader's Lease, is matched only by a rule that names its resource. Rules are plain data: a plan can be a JSON file.
type Rule struct {
	// Verb is create, update, patch, delete or deletecollection.
	Verb string `json:"verb,omitempty"`
	// Resource in plural, for example datavolumes.
	Resource string `json:"resource,omitempty"`
	// Subresource is "status", or "-" for the object itself only.
	Subresource string `json:"subresource,omitempty"`
	// Name of the object.
	Name string `json:"name,omitempty"`
	// Nth strikes at the n-th match only, from 1; 0 at each.
	Nth int `json:"nth,omitempty"`
	// Times is how many matches in a row are struck, from the n-th on; 0 means one. It has no meaning without Nth.
	Times int `json:"times,omitempty"`
	// When the rule strikes.
	When When `json:"when"`
	// Watch is the resource that stale and relist are about; one of KubeVirt's with its group: virtualmachines.kubevirt.io.
	Watch string `json:"watch,omitempty"`
	// Code that the operator gets from before and after: 409, 429, 500, 503; 0 cuts the connection.
	Code int `json:"code,omitempty"`
	// Delay before anything else happens; how long watches are held with stale and relist.
	Delay time.Duration `json:"delay,omitempty"`
}

func (r Rule) validate() error {
	switch r.When {
	case Before, After:
		if r.Code != 0 && (r.Code < 400 || r.Code > 599) {
			return fmt.Errorf("code %d is neither 0 nor an error", r.Code)
		}
	case Sever, SeverBefore, Hold, Slow:
		if r.Code != 0 {
			return fmt.Errorf("code %d has no meaning with %q", r.Code, r.When)
		}
	case Stale, Relist:
		if r.Watch == "" || r.Code != 0 {
			return fmt.Errorf("%q needs the resource whose watches it is about, and no code", r.When)
		}
	default:
		return fmt.Errorf("when %q is not before, after, sever, sever-before, hold, slow, stale or relist", r.When)
	}
	return nil
}

// strikes says that the match of that number, from 1, is one of those that the rule is meant for.
func (r Rule) strikes(match int) bool {
	return r.Nth == 0 || match >= r.Nth && match < r.Nth+max(1, r.Times)
}

func (r Rule) matches(q Request) bool {
	if q.N == 0 && r.Resource == "" {
		return false
	}
	subresource := r.Subresource
	if subresource == "-" {
		subresource = ""
	}
	return matches(r.Verb, q.Verb) && matches(r.Resource, q.Resource) && matches(r.Name, q.Name) &&
		(r.Subresource == "" || subresource == q.Subresource)
}

func matches(want, got string) bool { return want == "" || want == got }
