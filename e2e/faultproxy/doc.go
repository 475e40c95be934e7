// Package faultproxy stands between one operator process and the API server. It counts and records the operator's
// writes, and makes chosen ones fail: before they reach the server, after they took effect, by silence for ever, or by
// waiting until a test lets them go.
//
// A proxy serves one life of a process: after Sever it lets nothing through any more, and a test gives the next
// process a new proxy. A process that lives on can be given other rules for the next story: see Rearm. The n-th write of a single-threaded story is the same in each run; rules can also match by
// verb and resource and count from there.
package faultproxy
