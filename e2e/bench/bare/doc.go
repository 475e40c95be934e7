// Package bare is what the floors are made of: a client, watches, and writers that wait for work. It has no cache, no
// rate limit, no retries and no recovery.
package bare
