// Package bench measures the operator against a floor: a program that does the same work with the five writes for each
// image that cannot be saved. Both run on the same kind of fresh control plane, against the same simulators and the same
// creators, one after the other within each round; what counts is the ratio within a round.
//
// Limit and order are judged by the history in etcd, requests are counted from the audit log by user agent. A row in
// which limit or order did not hold is void, however fast it was.
package bench
