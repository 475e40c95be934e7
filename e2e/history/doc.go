// Package history records every change of every object of an API server, in the one order in which etcd made them.
//
// Polling, and even watching through the API server, sees one kind at a time and may skip states. What a test claims
// about limit, order and crashes is checked on this record instead: an event per revision, across all kinds, none
// left out.
package history
