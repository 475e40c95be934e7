package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	http = "url: https://a.example/x, sourceType: http, diskSize: 1Gi"
	s3   = "sourceType: s3, diskSize: 1Gi, secretRef: keys"

	urlRequired  = "url is required unless sourceType is blank"
	urlMisfit    = "url does not fit sourceType"
	urlSpaces    = "url must not contain spaces"
	urlPassword  = "url must not contain a user or password"
	badChecksum  = "checksum must be md5:, sha1:, sha256: or sha512:"
	httpChecksum = "checksum is checked by CDI for sourceType http only"
	badSize      = "diskSize must be more than 0 and at most 64Ti"
	badTTL       = "unusedTTL must be a duration such as 30m or 72h"
	badName      = "name must be a DNS label"
	fixedName    = "name is immutable"
	badSelector  = "selector is needed with from: Selector"
)

// Each entry is a spec in one line of YAML, and what the API server says against it; nothing where it is accepted.
var specs = map[string]struct{ spec, want string }{
	"http":                           {http, ""},
	"http, all fields":               {http + ", name: a, secretRef: k, certConfigMap: c, storageClass: s, snapshotClass: v, accessModes: [ReadWriteOnce, ReadWriteMany], volumeMode: Block, volumePolicy: DeleteAfterSnapshot, unusedTTL: 72h, allowedNamespaces: {from: All}", ""},
	"http without TLS":               {"url: 'http://a.example:8080/x?y=z#f', sourceType: http, diskSize: 1Gi", ""},
	"s3":                             {s3 + ", url: https://s3.example/bucket/key", ""},
	"s3 without TLS":                 {s3 + ", url: http://s3.example/bucket/key", ""},
	"registry":                       {"url: 'docker://quay.io/a/b:c', sourceType: registry, diskSize: 1Gi", ""},
	"registry by digest":             {"url: 'docker://fedora@sha256:00', sourceType: registry, diskSize: 1Gi", ""},
	"registry archive":               {"url: 'oci-archive://a/b', sourceType: registry, diskSize: 1Gi", ""},
	"blank":                          {"sourceType: blank, diskSize: 1Gi", ""},
	"no spec":                        {"", "spec.sourceType: Required"},
	"no source type":                 {"url: https://a.example/x, diskSize: 1Gi", "spec.sourceType: Required"},
	"no size":                        {"url: https://a.example/x, sourceType: http", "spec.diskSize: Required"},
	"another source type":            {"url: https://a.example/x, sourceType: ftp, diskSize: 1Gi", `spec.sourceType: Unsupported value: "ftp"`},
	"http without url":               {"sourceType: http, diskSize: 1Gi", urlRequired},
	"s3 without url":                 {s3, urlRequired},
	"registry without url":           {"sourceType: registry, diskSize: 1Gi", urlRequired},
	"blank with url":                 {"url: https://a.example/x, sourceType: blank, diskSize: 1Gi", urlRequired},
	"an empty url":                   {"url: '', sourceType: http, diskSize: 1Gi", "spec.url"},
	"http with a docker url":         {"url: 'docker://quay.io/a', sourceType: http, diskSize: 1Gi", urlMisfit},
	"registry with an http url":      {"url: https://a.example/x, sourceType: registry, diskSize: 1Gi", urlMisfit},
	"s3 without an object":           {s3 + ", url: https://s3.example/bucket", "url must name the bucket and the object"},
	"s3 with an empty object":        {s3 + ", url: https://s3.example/bucket/", "url must name the bucket and the object"},
	"s3 with an s3 url":              {s3 + ", url: 's3://bucket/key'", urlMisfit},
	"no scheme":                      {"url: a.example/x, sourceType: http, diskSize: 1Gi", urlMisfit},
	"a scheme in capitals":           {"url: 'HTTPS://a.example/x', sourceType: http, diskSize: 1Gi", urlMisfit},
	"no host":                        {"url: 'https:///x', sourceType: http, diskSize: 1Gi", urlMisfit},
	"no path":                        {"url: https://a.example, sourceType: http, diskSize: 1Gi", urlMisfit},
	"the root":                       {"url: https://a.example/, sourceType: http, diskSize: 1Gi", urlMisfit},
	"docker and nothing else":        {"url: 'docker://', sourceType: registry, diskSize: 1Gi", urlMisfit},
	"a file":                         {"url: 'file:///etc/passwd', sourceType: http, diskSize: 1Gi", urlMisfit},
	"a space in the url":             {"url: 'https://a.example/x y', sourceType: http, diskSize: 1Gi", urlSpaces},
	"a line break in the url":        {`url: "https://a.example/x\ny", sourceType: http, diskSize: 1Gi`, urlSpaces},
	"a tab in the url":               {`url: "https://a.example/x\ty", sourceType: http, diskSize: 1Gi`, urlSpaces},
	"a control character":            {`url: "https://a.example/x\x07", sourceType: http, diskSize: 1Gi`, urlSpaces},
	"a password in the url":          {"url: 'https://me:secret@a.example/x', sourceType: http, diskSize: 1Gi", urlPassword},
	"an @ in the path":               {"url: 'https://a.example/x@y', sourceType: http, diskSize: 1Gi", ""},
	"a url of 2048":                  {"url: 'https://a.example/" + strings.Repeat("x", 2030) + "', sourceType: http, diskSize: 1Gi", ""},
	"a url of 2049":                  {"url: 'https://a.example/" + strings.Repeat("x", 2031) + "', sourceType: http, diskSize: 1Gi", "spec.url: Too long"},
	"s3 without secret":              {"url: https://s3.example/b/k, sourceType: s3, diskSize: 1Gi", "secretRef is required for sourceType s3"},
	"blank with secret":              {"sourceType: blank, diskSize: 1Gi, secretRef: k", "secretRef and certConfigMap have no meaning with sourceType blank"},
	"blank with certificates":        {"sourceType: blank, diskSize: 1Gi, certConfigMap: k", "secretRef and certConfigMap have no meaning with sourceType blank"},
	"md5":                            {http + ", checksum: 'md5:" + hex(32) + "'", ""},
	"sha1":                           {http + ", checksum: 'sha1:" + hex(40) + "'", ""},
	"sha256":                         {http + ", checksum: 'sha256:" + hex(64) + "'", ""},
	"sha512":                         {http + ", checksum: 'sha512:" + hex(128) + "'", ""},
	"a digest that is too short":     {http + ", checksum: 'sha256:" + hex(63) + "'", badChecksum},
	"a digest of another length":     {http + ", checksum: 'md5:" + hex(40) + "'", badChecksum},
	"a digest in capitals":           {http + ", checksum: 'md5:" + strings.Repeat("A", 32) + "'", badChecksum},
	"a digest without an algorithm":  {http + ", checksum: '" + hex(64) + "'", badChecksum},
	"another algorithm":              {http + ", checksum: 'sha3:" + hex(64) + "'", badChecksum},
	"an empty checksum":              {http + ", checksum: ''", badChecksum},
	"a checksum that is too long":    {http + ", checksum: 'sha512:" + hex(130) + "'", "spec.checksum: Too long"},
	"a checksum with s3":             {s3 + ", url: https://s3.example/b/k, checksum: 'md5:" + hex(32) + "'", httpChecksum},
	"a checksum with registry":       {"url: 'docker://a/b', sourceType: registry, diskSize: 1Gi, checksum: 'md5:" + hex(32) + "'", httpChecksum},
	"a size as a number":             {size("1073741824"), ""},
	"a size with a fraction":         {size("1.5Gi"), ""},
	"a size in powers of ten":        {size("500M"), ""},
	"the largest size":               {size("64Ti"), ""},
	"no bytes":                       {size("0"), badSize},
	"no bytes, with a unit":          {size("0Gi"), badSize},
	"a negative size":                {size("-1Gi"), badSize},
	"too large":                      {size("65Ti"), badSize},
	"exabytes":                       {size("1E"), badSize},
	"a size that is none":            {size("large"), "spec.diskSize"},
	"a unit that is none":            {size("24GiB"), "spec.diskSize"},
	"an exponent":                    {size("'1e9'"), badSize},
	"an exponent to choke on":        {size("'1e-2147483647'"), badSize},
	"an exponent that is no number":  {size("'1e1.5'"), badSize},
	"an exponent beyond all bounds":  {size("'1e99999999999'"), badSize},
	"a true size":                    {size("true"), "spec.diskSize"},
	"a TTL of 0s":                    {http + ", unusedTTL: 0s", ""},
	"a TTL with several units":       {http + ", unusedTTL: 1h30m10.5s", ""},
	"a TTL as Go writes it":          {http + ", unusedTTL: 720h0m0s", ""},
	"a TTL in milliseconds":          {http + ", unusedTTL: 200ms", ""},
	"a TTL without a unit":           {http + ", unusedTTL: '30'", badTTL},
	"a TTL in days":                  {http + ", unusedTTL: 3d", badTTL},
	"a negative TTL":                 {http + ", unusedTTL: '-1h'", badTTL},
	"an empty TTL":                   {http + ", unusedTTL: ''", badTTL},
	"a TTL that Go cannot hold":      {http + ", unusedTTL: 99999999999999h", badTTL},
	"a TTL that adds up too far":     {http + ", unusedTTL: 999999h999999h999999h", badTTL},
	"a TTL as a number":              {http + ", unusedTTL: 30", "spec.unusedTTL"},
	"a TTL that is too long":         {http + ", unusedTTL: 1h" + strings.Repeat("0", 40) + "m", "spec.unusedTTL: Too long"},
	"a name":                         {http + ", name: harrison-vm", ""},
	"a name with a dot":              {http + ", name: a.b", badName},
	"a name in capitals":             {http + ", name: VM", badName},
	"a name that ends in a dash":     {http + ", name: a-", badName},
	"a name that begins with one":    {http + ", name: '-a'", badName},
	"a name of 64":                   {http + ", name: " + strings.Repeat("a", 64), "spec.name: Too long"},
	"an empty name":                  {http + ", name: ''", "spec.name"},
	"a secret that is too long":      {http + ", secretRef: " + strings.Repeat("a", 254), "spec.secretRef: Too long"},
	"an empty secret":                {http + ", secretRef: ''", "spec.secretRef"},
	"certificates, too long":         {http + ", certConfigMap: " + strings.Repeat("a", 254), "spec.certConfigMap: Too long"},
	"a storage class, too long":      {http + ", storageClass: " + strings.Repeat("a", 254), "spec.storageClass: Too long"},
	"a snapshot class, too long":     {http + ", snapshotClass: " + strings.Repeat("a", 254), "spec.snapshotClass: Too long"},
	"an empty storage class":         {http + ", storageClass: ''", "spec.storageClass"},
	"another access mode":            {http + ", accessModes: [ReadWrite]", `spec.accessModes[0]: Unsupported value: "ReadWrite"`},
	"an access mode twice":           {http + ", accessModes: [ReadWriteOnce, ReadWriteOnce]", "spec.accessModes[1]: Duplicate value"},
	"five access modes":              {http + ", accessModes: [ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod, ReadWriteOnce]", "spec.accessModes: Too many"},
	"another volume mode":            {http + ", volumeMode: File", `spec.volumeMode: Unsupported value: "File"`},
	"another volume policy":          {http + ", volumePolicy: Keep", `spec.volumePolicy: Unsupported value: "Keep"`},
	"namespaces by default":          {http + ", allowedNamespaces: {}", ""},
	"namespaces by selector":         {http + ", allowedNamespaces: {from: Selector, selector: {matchLabels: {a: b}}}", ""},
	"a selector without from":        {http + ", allowedNamespaces: {selector: {matchLabels: {a: b}}}", badSelector},
	"from Selector without one":      {http + ", allowedNamespaces: {from: Selector}", badSelector},
	"a selector with All":            {http + ", allowedNamespaces: {from: All, selector: {}}", badSelector},
	"namespaces from elsewhere":      {http + ", allowedNamespaces: {from: Some}", `spec.allowedNamespaces.from: Unsupported value: "Some"`},
	"allowedNamespaces names itself": {http + ", allowedNamespaces: {from: Selector}", "spec.allowedNamespaces"},
}

func hex(n int) string { return strings.Repeat("0a", n/2) + strings.Repeat("f", n%2) }

func size(quantity string) string {
	return "url: https://a.example/x, sourceType: http, diskSize: " + quantity
}

func image(t *testing.T, spec string) map[string]any {
	t.Helper()
	return object(t, "{apiVersion: pelotech.ot/v1alpha1, kind: VMDiskImage, metadata: {name: a}, spec: {"+spec+"}}")
}

func TestSpecsThatAreAcceptedAndRejected(t *testing.T) {
	g := newGate(t)
	for name, c := range specs {
		t.Run(name, func(t *testing.T) {
			obj := image(t, c.spec)
			complaints := g.complaints(t, obj, nil)
			if c.want != "" {
				assert.Contains(t, strings.Join(complaints, "\n"), c.want)
				return
			}
			assert.Empty(t, complaints)
			decoded := &v1alpha1.VMDiskImage{}
			assert.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj, decoded),
				"what is stored must be readable: one that is not would blind every informer")
		})
	}
}

// One bad field gives one complaint: nobody should have to guess which of several sentences is meant.
func TestEachComplaintIsTheOnlyOne(t *testing.T) {
	g := newGate(t)
	for name, c := range specs {
		if c.want == "" || name == "no spec" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			complaints := g.complaints(t, image(t, c.spec), nil)
			assert.LessOrEqual(t, len(complaints), 3, complaints) // a type that is wrong has one for each choice
		})
	}
}

func TestChanges(t *testing.T) {
	cases := map[string]struct{ old, spec, want string }{
		"nothing changes":          {http + ", name: a", http + ", name: a", ""},
		"the url changes":          {http, "url: https://b.example/x, sourceType: http, diskSize: 1Gi", ""},
		"the source changes":       {http, "sourceType: blank, diskSize: 1Gi", ""},
		"the size changes":         {http, size("2Gi"), ""},
		"the name stays away":      {http, http, ""},
		"the name changes":         {http + ", name: a", http + ", name: b", fixedName},
		"the name is taken away":   {http + ", name: a", http, fixedName},
		"a name is given later":    {http, http + ", name: a", fixedName},
		"a change to what is bad":  {http, "sourceType: http, diskSize: 1Gi", urlRequired},
		"the name and a bad value": {http + ", name: a", http + ", name: B", badName},
	}
	g := newGate(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			complaints := strings.Join(g.complaints(t, image(t, c.spec), image(t, c.old)), "\n")
			if c.want == "" {
				assert.Empty(t, complaints)
			} else {
				assert.Contains(t, complaints, c.want)
			}
		})
	}
}

func TestStatusBounds(t *testing.T) {
	const now = "'2026-01-02T03:04:05Z'"
	cases := map[string]struct{ status, want string }{
		"a phase":                 {"phase: Queued", ""},
		"another phase":           {"phase: Done", "status.phase: Unsupported value"},
		"a failure":               {"lastFailure: {time: " + now + ", reason: Unknown, message: m}", ""},
		"a failure of no reason":  {"lastFailure: {time: " + now + "}", "status.lastFailure.reason: Required"},
		"a failure of another":    {"lastFailure: {time: " + now + ", reason: Weather}", "status.lastFailure.reason: Unsupported value"},
		"a message that is long":  {"lastFailure: {time: " + now + ", reason: Unknown, message: " + strings.Repeat("a", 1025) + "}", "status.lastFailure.message: Too long"},
		"references":              {"references: {count: 2, sample: [a/b]}", ""},
		"fewer than no reference": {"references: {count: -1}", "status.references.count"},
		"half an artifact":        {"artifact: {revision: a}", "status.artifact.snapshot: Required"},
		"a condition of no kind":  {"conditions: [{status: 'True', reason: A, message: '', lastTransitionTime: " + now + "}]", "status.conditions[0].type: Required"},
	}
	g := newGate(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obj := image(t, http)
			obj["status"] = object(t, "{"+c.status+"}")
			complaints := strings.Join(g.complaints(t, obj, nil), "\n")
			if c.want == "" {
				assert.Empty(t, complaints)
			} else {
				assert.Contains(t, complaints, c.want)
			}
		})
	}
}
