package s3server

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
)

func TestGet(t *testing.T) {
	server, err := Start(Options{AccessKey: "AKID", SecretKey: "SECRET"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	image := diskimage.QCOW2(64<<20, 1<<20, 1)
	require.NoError(t, server.Put("images", "folder/disk one.qcow2", image.Bytes))
	require.NoError(t, server.Put("images", "disk.qcow2", image.Bytes))

	for name, tc := range map[string]struct {
		access, secret, key string
		want                string
	}{
		"the right keys":                        {"AKID", "SECRET", "disk.qcow2", ""},
		"a key with a folder and a blank":       {"AKID", "SECRET", "folder/disk one.qcow2", ""},
		"another access key":                    {"OTHER", "SECRET", "disk.qcow2", "InvalidAccessKeyId"},
		"another secret key":                    {"AKID", "OTHER", "disk.qcow2", "SignatureDoesNotMatch"},
		"an object that does not exist":         {"AKID", "SECRET", "nosuch", "NoSuchKey"},
		"no object and another access key, too": {"OTHER", "SECRET", "nosuch", "InvalidAccessKeyId"},
	} {
		t.Run(name, func(t *testing.T) {
			before := server.Of("images", tc.key)
			client := s3.New(s3.Options{
				BaseEndpoint: aws.String("http://" + server.listener.Addr().String()), Region: "127", UsePathStyle: true,
				Credentials: credentials.NewStaticCredentialsProvider(tc.access, tc.secret, ""),
			})
			out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("images"), Key: aws.String(tc.key)})
			if tc.want != "" {
				var api smithy.APIError
				require.True(t, errors.As(err, &api), "%v", err)
				assert.Equal(t, tc.want, api.ErrorCode())
				assert.Equal(t, before.Complete, server.Of("images", tc.key).Complete)
				return
			}
			require.NoError(t, err)
			body, err := io.ReadAll(out.Body)
			require.NoError(t, err)
			assert.Equal(t, image.Bytes, body)
			assert.Eventually(t, func() bool { return server.Of("images", tc.key).Complete == before.Complete+1 }, time.Second, time.Millisecond)
		})
	}
}

func TestUnsignedRequestIsRefused(t *testing.T) {
	server, err := Start(Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	require.NoError(t, server.Put("images", "disk", []byte("x")))
	resp, err := http.Get(server.URL("images", "disk"))
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusForbidden, resp.StatusCode)
	assert.Contains(t, string(body), "<Code>AccessDenied</Code>")
	assert.Equal(t, ObjectStats{Gets: 1, Refused: 1}, server.Of("images", "disk"))
}
