package sim

// Sources are prefixes for the policy's allowedSources that cover all that the servers give out: no public host has
// their addresses.
func (w *World) Sources() []string {
	return []string{w.Images.URL("/"), w.S3.URL("", ""), w.Registry.URL("")}
}
