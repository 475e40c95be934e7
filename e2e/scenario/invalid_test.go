package scenario

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// invalidSpecs reads what a user reads.
func invalidSpecs(t *testing.T, w *world) {
	const manifest = "apiVersion: pelotech.ot/v1alpha1\nkind: VMDiskImage\nmetadata: {name: wrong, namespace: %s}\nspec: {%s}\n"
	namespace := w.namespace(t)
	for name, test := range map[string]struct{ spec, want string }{
		"no url":                 {`sourceType: http, diskSize: 1Gi`, "url is required unless sourceType is blank"},
		"a url with blank":       {`sourceType: blank, diskSize: 1Gi, url: "https://example.com/a"`, "url is required unless sourceType is blank, and has no meaning with blank"},
		"a scheme of another":    {`sourceType: http, diskSize: 1Gi, url: "ftp://example.com/a"`, "url does not fit sourceType"},
		"no such source":         {`sourceType: torrent, diskSize: 1Gi, url: "https://example.com/a"`, `spec.sourceType: Unsupported value: "torrent"`},
		"no size":                {`sourceType: http, url: "https://example.com/a"`, "spec.diskSize: Required value"},
		"a size of nothing":      {`sourceType: http, diskSize: 0, url: "https://example.com/a"`, "diskSize must be more than 0"},
		"a size that is none":    {`sourceType: http, diskSize: big, url: "https://example.com/a"`, "spec.diskSize"},
		"a bucket without keys":  {`sourceType: s3, diskSize: 1Gi, url: "https://example.com/b/a"`, "secretRef is required for sourceType s3"},
		"a checksum of a bucket": {`sourceType: s3, secretRef: keys, diskSize: 1Gi, url: "https://example.com/b/a", checksum: "md5:0123456789abcdef0123456789abcdef"`, "checksum is checked by CDI for sourceType http only"},
		"a short checksum":       {`sourceType: http, diskSize: 1Gi, url: "https://example.com/a", checksum: "sha256:abc"`, "checksum must be md5:, sha1:, sha256: or sha512:"},
		"a misspelt field":       {`sourceType: http, diskSiez: 1Gi, diskSize: 1Gi, url: "https://example.com/a"`, `unknown field "spec.diskSiez"`},
	} {
		_, err := w.cluster.Kubectl(t.Context(), fmt.Sprintf(manifest, namespace, test.spec), "apply", "-f", "-")
		assert.ErrorContains(t, err, test.want, name)
	}
}
