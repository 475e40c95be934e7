package importer

import (
	"bytes"
	"compress/gzip"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
	"github.com/pelotech/open-terrain/e2e/sim/imageserver"
	"github.com/pelotech/open-terrain/e2e/sim/registryserver"
	"github.com/pelotech/open-terrain/e2e/sim/s3server"
)

const (
	complete  = `{"scratchSpaceRequired":false,"preallocationApplied":false,"message":"Import Complete"}`
	scratch   = `{"scratchSpaceRequired":true,"preallocationApplied":false,"message":"Import Complete"}`
	claimSize = 71303168
)

func servers(t *testing.T) (*imageserver.Server, *s3server.Server, *registryserver.Server) {
	t.Helper()
	web, err := imageserver.Start(imageserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, web.Close()) })
	bucket, err := s3server.Start(s3server.Options{AccessKey: "AKID", SecretKey: "SECRET"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, bucket.Close()) })
	hub, err := registryserver.Start(registryserver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, hub.Close()) })

	good := diskimage.QCOW2(64<<20, 512<<10, 1)
	for file, content := range map[string][]byte{
		"d.qcow2": good.Bytes, "large.qcow2": diskimage.QCOW2(128<<20, 512<<10, 1).Bytes, "based.qcow2": diskimage.QCOW2WithBacking(1<<20, "base.img").Bytes,
		"d.qcow2.gz": zipped(t, good.Bytes), "tiny": []byte("tiny"), "broken.qcow2": append([]byte("QFI\xfb"), make([]byte, 600)...),
		"raw": diskimage.Raw(1<<20, 1).Bytes,
	} {
		web.Add(file, content)
		require.NoError(t, bucket.Put("images", file, content))
	}
	require.NoError(t, hub.PutDisk(t.Context(), "disks/good:v1", "disk/disk.qcow2", good.Bytes))
	require.NoError(t, hub.PutDisk(t.Context(), "disks/wrong:v1", "image/disk.qcow2", good.Bytes))
	return web, bucket, hub
}

func zipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestRun(t *testing.T) {
	web, bucket, hub := servers(t)
	sum := diskimage.QCOW2(64<<20, 512<<10, 1).SHA256()
	zeros := strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		request Request
		message string
		exit    int32
	}{
		"http without scratch space":     {Request{Source: SourceHTTP, URL: web.URL("ok/d.qcow2")}, scratch, 0},
		"http with scratch space":        {Request{Source: SourceHTTP, URL: web.URL("ok/d.qcow2"), Scratch: true}, complete, 0},
		"http with the right checksum":   {Request{Source: SourceHTTP, URL: web.URL("ok/d.qcow2"), Scratch: true, Checksum: "sha256:" + sum}, complete, 0},
		"http with a wrong checksum":     {Request{Source: SourceHTTP, URL: web.URL("ok/d.qcow2"), Scratch: true, Checksum: "sha256:" + zeros}, `{"message":"Unable to process data: Unable to transfer source data to scratch space: checksum validation failed: checksum mismatch: expected sha256:` + zeros + `, calculated sha256:` + sum + `"}`, 0},
		"http without ranges":            {Request{Source: SourceHTTP, URL: web.URL("noranges/d.qcow2"), Scratch: true}, complete, 0},
		"http with user and password":    {Request{Source: SourceHTTP, URL: web.URL("auth/me/pw/d.qcow2"), Scratch: true, AccessKey: "me", SecretKey: "pw"}, complete, 0},
		"http with a wrong password":     {Request{Source: SourceHTTP, URL: web.URL("auth/me/pw/d.qcow2"), AccessKey: "me", SecretKey: "xx"}, "Unable to connect to http data source: expected status code 200, got 401. Status: 401 Unauthorized", 1},
		"http 404":                       {Request{Source: SourceHTTP, URL: web.URL("status/404/x")}, "Unable to connect to http data source: expected status code 200, got 404. Status: 404 Not Found", 1},
		"http compressed":                {Request{Source: SourceHTTP, URL: web.URL("ok/d.qcow2.gz"), Scratch: true}, complete, 0},
		"http refused":                   {Request{Source: SourceHTTP, URL: "http://127.0.0.1:1/d"}, `Unable to connect to http data source: HTTP request errored: Get "http://127.0.0.1:1/d": dial tcp 127.0.0.1:1: connect: connection refused`, 1},
		"http cut":                       {Request{Source: SourceHTTP, URL: web.URL("cut/300000/d.qcow2"), Scratch: true}, "Unable to process data: Unable to transfer source data to scratch space: failed to pull image: unexpected EOF", 1},
		"http truncated but whole":       {Request{Source: SourceHTTP, URL: web.URL("short/300000/d.qcow2"), Scratch: true}, complete, 0},
		"http with a page of HTML":       {Request{Source: SourceHTTP, URL: web.URL("html/d.qcow2"), Scratch: true}, complete, 0},
		"http too large is told at once": {Request{Source: SourceHTTP, URL: web.URL("ok/large.qcow2")}, "Unable to process data: virtual image size 134217728 is larger than the reported available storage 71303168. A larger PVC is required", 1},
		"http too large without ranges":  {Request{Source: SourceHTTP, URL: web.URL("noranges/large.qcow2"), Scratch: true}, "Unable to process data: Unable to convert source data to target format: virtual image size 134217728 is larger than the reported available storage 71303168. A larger PVC is required", 1},
		"http with a backing file":       {Request{Source: SourceHTTP, URL: web.URL("ok/based.qcow2"), Scratch: true}, "Unable to process data: Unable to convert source data to target format: Image /scratch/tmpimage is invalid because it has invalid backing file base.img", 1},
		"http with four bytes":           {Request{Source: SourceHTTP, URL: web.URL("ok/tiny")}, "Unable to process data: Unable to obtain information about data source: could not process image header: unexpected EOF", 1},
		"http with a broken qcow2":       {Request{Source: SourceHTTP, URL: web.URL("ok/broken.qcow2"), Scratch: true}, "Unable to process data: Unable to convert source data to target format: qemu-img: Could not open '/scratch/tmpimage': Unsupported qcow2 version 0, exit status 1", 1},
		"http that stalls":               {Request{Source: SourceHTTP, URL: web.URL("slow/1/d.qcow2"), Scratch: true, IdleTimeout: 20 * time.Millisecond}, "", 1},
		"s3 without scratch space":       {Request{Source: SourceS3, URL: bucket.URL("images", "d.qcow2"), AccessKey: "AKID", SecretKey: "SECRET"}, scratch, 0},
		"s3 with scratch space":          {Request{Source: SourceS3, URL: bucket.URL("images", "d.qcow2"), AccessKey: "AKID", SecretKey: "SECRET", Scratch: true}, complete, 0},
		"s3 with a raw disk":             {Request{Source: SourceS3, URL: bucket.URL("images", "raw"), AccessKey: "AKID", SecretKey: "SECRET"}, complete, 0},
		"s3 with another access key":     {Request{Source: SourceS3, URL: bucket.URL("images", "d.qcow2"), AccessKey: "OTHER", SecretKey: "SECRET"}, "Unable to connect to s3 data source: could not get s3 object: \"images/d.qcow2\": InvalidAccessKeyId: The AWS Access Key Id you provided does not exist in our records.\n\tstatus code: 403, request id: ", 1},
		"s3 with another secret key":     {Request{Source: SourceS3, URL: bucket.URL("images", "d.qcow2"), AccessKey: "AKID", SecretKey: "OTHER"}, "Unable to connect to s3 data source: could not get s3 object: \"images/d.qcow2\": SignatureDoesNotMatch: ", 1},
		"s3 without such an object":      {Request{Source: SourceS3, URL: bucket.URL("images", "nosuch"), AccessKey: "AKID", SecretKey: "SECRET"}, "Unable to connect to s3 data source: could not get s3 object: \"images/nosuch\": NoSuchKey: ", 1},
		"s3 without keys":                {Request{Source: SourceS3, URL: bucket.URL("images", "d.qcow2")}, "Unable to connect to s3 data source: could not get s3 object: \"images/d.qcow2\": EmptyStaticCreds: static credentials are empty", 1},
		"registry":                       {Request{Source: SourceRegistry, URL: hub.URL("disks/good:v1"), Scratch: true}, complete, 0},
		"registry without a disk":        {Request{Source: SourceRegistry, URL: hub.URL("disks/wrong:v1"), Scratch: true}, "Unable to process data: Unable to transfer source data to scratch space: Failed to read registry image: Failed to find VM disk image file in the container image", 1},
		"registry without such an image": {Request{Source: SourceRegistry, URL: hub.URL("disks/nosuch:v1"), Scratch: true}, "Unable to process data: Unable to transfer source data to scratch space: Failed to read registry image: failed to pull image: ", 1},
		"a blank disk":                   {Request{Source: SourceBlank}, `{"preallocationApplied":false,"message":"Import Complete"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.request.Dir, tc.request.Size = t.TempDir(), claimSize
			got := Run(t.Context(), tc.request)
			assert.Equal(t, tc.exit, got.ExitCode, got.Message)
			assert.True(t, strings.HasPrefix(got.Message, tc.message), got.Message)
			assert.Equal(t, tc.message == scratch, got.ScratchRequired)
			assert.Equal(t, strings.Contains(tc.message, "checksum mismatch"), got.ChecksumMismatch)
		})
	}
}

func TestTooSmallHasOneMessage(t *testing.T) {
	assert.Equal(t, "DataVolume too small to contain image", SimplifyMessage(tooLarge{2, 1}.Error()))
	assert.Equal(t, "another", SimplifyMessage("another"))
}

func TestTwoRunsMakeOneDownload(t *testing.T) {
	web, bucket, hub := servers(t)
	for _, withScratch := range []bool{false, true} {
		Run(t.Context(), Request{Source: SourceHTTP, URL: web.URL("ok/d.qcow2"), Dir: t.TempDir(), Size: claimSize, Scratch: withScratch})
		Run(t.Context(), Request{Source: SourceS3, URL: bucket.URL("images", "d.qcow2"), Dir: t.TempDir(), Size: claimSize, Scratch: withScratch, AccessKey: "AKID", SecretKey: "SECRET"})
	}
	settled := func() bool {
		s := web.Of("/ok/d.qcow2")
		return s.Active == 0 && s.PlainGets == 2 && s.Complete == 1
	}
	assert.Eventually(t, settled, time.Second, time.Millisecond, "%+v", web.Of("/ok/d.qcow2"))
	assert.Equal(t, 5, web.Of("/ok/d.qcow2").Heads)
	assert.Eventually(t, func() bool { return bucket.Of("images", "d.qcow2").Complete == 1 }, time.Second, time.Millisecond)
	assert.Equal(t, 2, bucket.Of("images", "d.qcow2").Gets)
	Run(t.Context(), Request{Source: SourceRegistry, URL: hub.URL("disks/good:v1"), Dir: t.TempDir(), Size: claimSize, Scratch: true})
	assert.Equal(t, 1, hub.BlobGets("disks/good"))
}

func TestKillEndsTheDownload(t *testing.T) {
	web, _, _ := servers(t)
	for _, path := range []string{"hang/d.qcow2", "slow/1000/d.qcow2", "loop/d.qcow2"} {
		t.Run(path, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			Run(ctx, Request{Source: SourceHTTP, URL: web.URL(path), Dir: t.TempDir(), Size: claimSize, Scratch: true})
			assert.Eventually(t, func() bool { return web.Of("/"+path).Active == 0 }, time.Second, time.Millisecond)
		})
	}
}

func TestProgressIsToldForHTTP(t *testing.T) {
	web, _, _ := servers(t)
	var last float64
	Run(t.Context(), Request{Source: SourceHTTP, URL: web.URL("ok/d.qcow2"), Dir: t.TempDir(), Size: claimSize, Scratch: true, OnProgress: func(p float64) { last = p }})
	assert.InDelta(t, 100, last, 0.001)
}
