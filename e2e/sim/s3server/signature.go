package s3server

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$`)

// check verifies a request's signature (version 4, in the header); it returns an S3 error code and message, or "".
func (s *Server) check(r *http.Request) (code, message string) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return "AccessDenied", "Access Denied"
	}
	m := authorization.FindStringSubmatch(header)
	if m == nil || m[1] != s.options.AccessKey {
		return "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."
	}
	when, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || s.sign(r, m[2], m[3], when) != header {
		return "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method."
	}
	return "", ""
}

// sign returns the Authorization header that the request should have.
func (s *Server) sign(r *http.Request, region, signedHeaders string, when time.Time) string {
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), http.NoBody)
	if err != nil {
		return ""
	}
	for name := range strings.SplitSeq(signedHeaders, ";") {
		if name == "content-length" {
			again.ContentLength = r.ContentLength
		} else if values := r.Header.Values(name); len(values) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	credentials := aws.Credentials{AccessKeyID: s.options.AccessKey, SecretAccessKey: s.options.SecretKey}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(r.Context(), credentials, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", region, when); err != nil {
		return ""
	}
	return again.Header.Get("Authorization")
}
