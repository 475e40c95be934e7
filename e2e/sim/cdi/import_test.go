package cdi_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi"
)

func TestGoodImportGoesAsOnTheRealCDI(t *testing.T) {
	ns := namespace(t)
	before := web.Of("/ok/d.qcow2")
	lines, dv := follow(t, httpVolume(ns, "ok", web.URL("ok/d.qcow2"), onlyOnce), bound)
	for i := range lines {
		lines[i] = replaceNamespace(lines[i], ns)
	}
	golden(t, "testdata/good-import.golden", lines)

	assert.Equal(t, before.Complete+1, web.Of("/ok/d.qcow2").Complete, "one download")
	assert.Equal(t, before.PlainGets+2, web.Of("/ok/d.qcow2").PlainGets, "and the probe that is dropped")
	assert.Equal(t, "true", dv.Annotations["cdi.kubevirt.io/storage.usePopulator"])

	var claim corev1.PersistentVolumeClaim
	require.NoError(t, cl.Get(t.Context(), client.ObjectKeyFromObject(dv), &claim))
	assert.Equal(t, int64(142270792), claim.Spec.Resources.Requests.Storage().Value(), "6% overhead")
	assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
	assert.True(t, metav1.IsControlledBy(&claim, dv))
	assert.Equal(t, "test", claim.Labels["who"])
	assert.Eventually(t, func() bool { return len(claims(t, ns)) == 1 && len(pods(t, ns)) == 0 }, patience, 10*time.Millisecond, "prime and scratch claims and pods go")
}

func TestOtherSources(t *testing.T) {
	ns := namespace(t)
	secret(t, ns, "right", map[string]string{"accessKeyId": "AKID", "secretKey": "SECRET"})
	secret(t, ns, "wrong", map[string]string{"accessKeyId": "OTHER", "secretKey": "SECRET"})
	secret(t, ns, "user", map[string]string{"accessKeyId": "me", "secretKey": "pw"})
	registry := hub.URL("disks/good:v1")
	for name, tc := range map[string]struct {
		source cdiv1.DataVolumeSource
		stop   func(*cdiv1.DataVolume) bool
		want   string
	}{
		"s3 with the right keys":  {cdiv1.DataVolumeSource{S3: &cdiv1.DataVolumeSourceS3{URL: bucket.URL("images", "d.qcow2"), SecretRef: "right"}}, bound, "Completed: Import Complete"},
		"s3 with another key":     {cdiv1.DataVolumeSource{S3: &cdiv1.DataVolumeSourceS3{URL: bucket.URL("images", "d.qcow2"), SecretRef: "wrong"}}, failing, `Error: Unable to connect to s3 data source: could not get s3 object: "images/d.qcow2": InvalidAccessKeyId: `},
		"http with a password":    {cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{URL: web.URL("auth/me/pw/d.qcow2"), SecretRef: "user"}}, bound, "Completed: Import Complete"},
		"registry":                {cdiv1.DataVolumeSource{Registry: &cdiv1.DataVolumeSourceRegistry{URL: &registry}}, bound, "Completed: Import Complete"},
		"blank":                   {cdiv1.DataVolumeSource{Blank: &cdiv1.DataVolumeBlankImage{}}, bound, "Completed: Import Complete"},
		"a page instead of image": {cdiv1.DataVolumeSource{HTTP: &cdiv1.DataVolumeSourceHTTP{URL: web.URL("html/d.qcow2")}}, bound, "Completed: Import Complete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dv := httpVolume(ns, dashes(name), "", onlyOnce)
			dv.Spec.Source = &tc.source
			_, got := follow(t, dv, tc.stop)
			c := condition(got, cdiv1.DataVolumeRunning)
			assert.Contains(t, c.Reason+": "+c.Message, tc.want)
		})
	}
}

func TestFailuresWithoutRestart(t *testing.T) {
	ns := namespace(t)
	for name, tc := range map[string]struct {
		path   string
		mods   []func(*cdiv1.DataVolume)
		golden string
		gets   int
	}{
		"not found": {"status/404/never", nil, "testdata/404-never.golden", 1},
		"cut":       {"cut/300000/d.qcow2", nil, "testdata/cut-never.golden", 2},
		"too small": {"ok/large.qcow2", []func(*cdiv1.DataVolume){size("64Mi")}, "testdata/too-small-never.golden", 1},
		"checksum":  {"short/400000/d.qcow2", []func(*cdiv1.DataVolume){checksum("sha256:" + good.SHA256())}, "testdata/checksum.golden", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, dv := follow(t, httpVolume(ns, dashes(name), web.URL(tc.path), append(tc.mods, onlyOnce)...), failing)
			for i := range lines {
				lines[i] = replaceNamespace(lines[i], ns)
			}
			golden(t, tc.golden, lines)
			assert.Never(t, func() bool { return web.Of("/"+tc.path).PlainGets > tc.gets }, 300*time.Millisecond, 20*time.Millisecond, "no second download")
			want := corev1.PodFailed
			for _, pod := range pods(t, ns) {
				if pod.Labels["who"] == "test" && owns(t, dv, &pod) {
					assert.Equal(t, want, pod.Status.Phase, "the pod stays")
					assert.Equal(t, corev1.RestartPolicyNever, pod.Spec.RestartPolicy)
				}
			}
		})
	}
}

func TestRestartsDownloadAgain(t *testing.T) {
	ns := namespace(t)
	lines, dv := follow(t, httpVolume(ns, "e404", web.URL("status/404/restarts")), func(dv *cdiv1.DataVolume) bool { return dv.Status.RestartCount == 3 })
	for i := range lines {
		lines[i] = replaceNamespace(lines[i], ns)
	}
	golden(t, "testdata/404-restarts.golden", lines)
	assert.GreaterOrEqual(t, web.Of("/status/404/restarts").PlainGets, 3)
	require.NoError(t, cl.Delete(t.Context(), dv))
	assert.Eventually(t, func() bool { return len(pods(t, ns)) == 0 }, patience, 10*time.Millisecond)

	_, dv = follow(t, httpVolume(ns, "twice", web.URL("failfirst/4/d.qcow2")), bound)
	assert.Equal(t, int32(2), dv.Status.RestartCount, "HEAD and GET fail in two attempts, then it works")
}

func TestMissingSecretHoldsThePodBack(t *testing.T) {
	ns := namespace(t)
	dv := httpVolume(ns, "waiting", web.URL("auth/me/pw/d.qcow2"), func(dv *cdiv1.DataVolume) { dv.Spec.Source.HTTP.SecretRef = "later" })
	_, got := follow(t, dv, func(dv *cdiv1.DataVolume) bool {
		return condition(dv, cdiv1.DataVolumeRunning).Reason == "CreateContainerConfigError"
	})
	assert.Equal(t, cdiv1.ImportScheduled, got.Status.Phase)
	assert.Equal(t, `secret "later" not found`, condition(got, cdiv1.DataVolumeRunning).Message)
	secret(t, ns, "later", map[string]string{"accessKeyId": "me", "secretKey": "pw"})
	watch(t, got, bound)
}

func TestMissingCertificatesHoldThePodBack(t *testing.T) {
	ns := namespace(t)
	dv := httpVolume(ns, "waiting", web.URL("ok/d.qcow2"), func(dv *cdiv1.DataVolume) { dv.Spec.Source.HTTP.CertConfigMap = "later" })
	require.NoError(t, cl.Create(t.Context(), dv))
	assert.Eventually(t, func() bool {
		var events corev1.EventList
		require.NoError(t, cl.List(t.Context(), &events, client.InNamespace(ns)))
		return len(events.Items) > 0 && events.Items[0].Message == `MountVolume.SetUp failed for volume "cdi-cert-vol" : configmap "later" not found`
	}, patience, 20*time.Millisecond)
	require.NoError(t, cl.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "later"}, Data: map[string]string{"ca.pem": "none"}}))
	watch(t, dv, bound)
}

func TestProgressOfASlowDownload(t *testing.T) {
	ns := namespace(t)
	_, dv := follow(t, httpVolume(ns, "slow", web.URL("slow/200000/d.qcow2")), func(dv *cdiv1.DataVolume) bool {
		return dv.Status.Progress != "" && dv.Status.Progress != "N/A"
	})
	assert.Regexp(t, `^\d+\.\d\d%$`, string(dv.Status.Progress))
	assert.Equal(t, cdiv1.ImportInProgress, dv.Status.Phase)
}

func TestDeletionStopsTheDownload(t *testing.T) {
	ns := namespace(t)
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground} {
		t.Run(string(policy), func(t *testing.T) {
			path := "slow/20000/d.qcow2"
			_, dv := follow(t, httpVolume(ns, dashes("del "+string(policy)), web.URL(path)), func(dv *cdiv1.DataVolume) bool {
				return dv.Status.Progress != "" && dv.Status.Progress != "N/A"
			})
			require.Positive(t, web.Of("/"+path).Active)
			require.NoError(t, cl.Delete(t.Context(), dv, client.PropagationPolicy(policy)))
			assert.Eventually(t, func() bool { return web.Of("/"+path).Active == 0 }, 2*time.Second, 10*time.Millisecond)
			gone := func() bool { return apierrors.IsNotFound(cl.Get(t.Context(), client.ObjectKeyFromObject(dv), dv)) }
			require.Eventually(t, gone, patience, 10*time.Millisecond)
			if policy == metav1.DeletePropagationForeground {
				assert.Empty(t, pods(t, ns))
				assert.Empty(t, claims(t, ns))
			}
			assert.Eventually(t, func() bool { return len(pods(t, ns)) == 0 && len(claims(t, ns)) == 0 }, patience, 10*time.Millisecond)
			assert.Zero(t, web.Of("/"+path).Complete)
		})
	}
}

func TestForegroundDeletionHangsWhenTheGarbageCollectorIsFirst(t *testing.T) {
	ns := namespace(t)
	behave.set("late", cdi.Behaviour{LatePodDeletion: true})
	_, dv := follow(t, httpVolume(ns, "late", web.URL("cut/300000/d.qcow2"), onlyOnce), failing)
	require.NoError(t, cl.Delete(t.Context(), dv, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	terminating := func() bool {
		all := pods(t, ns)
		return len(all) == 1 && all[0].DeletionTimestamp != nil && *all[0].DeletionGracePeriodSeconds == 0
	}
	require.Eventually(t, terminating, patience, 10*time.Millisecond)
	time.Sleep(500 * time.Millisecond)
	assert.True(t, terminating(), "the pod waits for its scratch claim")
	assert.Len(t, claims(t, ns), 3, "and that for the pod")
	pod := pods(t, ns)[0]
	pod.Finalizers = nil // the way out
	require.NoError(t, cl.Update(t.Context(), &pod))
	assert.Eventually(t, func() bool { return len(claims(t, ns)) == 0 }, patience, 10*time.Millisecond)
}

func TestOddBehaviours(t *testing.T) {
	ns := namespace(t)
	running := func(reason string) func(*cdiv1.DataVolume) bool {
		return func(dv *cdiv1.DataVolume) bool { return condition(dv, cdiv1.DataVolumeRunning).Reason == reason }
	}
	boundReason := func(reason string) func(*cdiv1.DataVolume) bool {
		return func(dv *cdiv1.DataVolume) bool { return condition(dv, cdiv1.DataVolumeBound).Reason == reason }
	}
	for name, tc := range map[string]struct {
		behaviour cdi.Behaviour
		stop      func(*cdiv1.DataVolume) bool
		phase     cdiv1.DataVolumePhase
	}{
		"it stays pending":        {cdi.Behaviour{StopAt: cdiv1.Pending}, boundReason("NotFound"), cdiv1.Pending},
		"the quota is exceeded":   {cdi.Behaviour{QuotaExceeded: "exceeded quota: q"}, boundReason("ErrExceededQuota"), cdiv1.Pending},
		"there is no node for it": {cdi.Behaviour{Unschedulable: true}, running("Unschedulable"), cdiv1.ImportScheduled},
		"it never starts":         {cdi.Behaviour{StopAt: cdiv1.ImportScheduled}, running("ContainerCreating"), cdiv1.ImportScheduled},
		"it never ends":           {cdi.Behaviour{StopAt: cdiv1.ImportInProgress}, running("Pod is running"), cdiv1.ImportInProgress},
		"it fails by order":       {cdi.Behaviour{Fail: "by order"}, running("Error"), cdiv1.ImportScheduled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dv := httpVolume(ns, dashes(name), web.URL("ok/d.qcow2"), onlyOnce)
			behave.set(dv.Name, tc.behaviour)
			_, got := follow(t, dv, tc.stop)
			assert.Equal(t, tc.phase, got.Status.Phase)
			behave.set(dv.Name, cdi.Behaviour{LoseClaim: true})
			if tc.behaviour.Fail != "" { // until the pod is deleted
				require.NoError(t, cl.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(ns), client.MatchingLabels{"cdi.kubevirt.io": "importer"}))
			}
			_, got = watch(t, got, boundReason("ClaimLost"))
			assert.Equal(t, cdiv1.Succeeded, got.Status.Phase)
		})
	}
}

func TestDeletedClaimIsImportedAgain(t *testing.T) {
	ns := namespace(t)
	_, dv := follow(t, httpVolume(ns, "again", web.URL("noranges/d.qcow2")), bound)
	require.NoError(t, cl.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "again"}}))
	_, dv = watch(t, dv, func(dv *cdiv1.DataVolume) bool { return dv.Status.Phase == cdiv1.ImportInProgress })
	watch(t, dv, bound)
	assert.Eventually(t, func() bool { return web.Of("/noranges/d.qcow2").Complete == 2 }, patience, 10*time.Millisecond)
}
