package cdi

import (
	"errors"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/importer"
)

// source is where a DataVolume's disk comes from.
type source struct {
	kind, url, secret, certConfigMap, checksum string
}

// sourceOf reads the source; clones and the sources of other hypervisors are errors.
func sourceOf(dv *cdiv1.DataVolume) (source, error) {
	s := dv.Spec.Source
	switch {
	case s == nil:
		return source{}, errors.New("the simulator plays no DataVolume without spec.source")
	case s.HTTP != nil:
		return source{importer.SourceHTTP, s.HTTP.URL, s.HTTP.SecretRef, s.HTTP.CertConfigMap, s.HTTP.Checksum}, nil
	case s.S3 != nil:
		return source{importer.SourceS3, s.S3.URL, s.S3.SecretRef, s.S3.CertConfigMap, ""}, nil
	case s.Registry != nil:
		return source{importer.SourceRegistry, value(s.Registry.URL), value(s.Registry.SecretRef), value(s.Registry.CertConfigMap), ""}, nil
	case s.Blank != nil:
		return source{kind: importer.SourceBlank}, nil
	default:
		return source{}, errors.New("the simulator plays imports from http, s3, registry and blank only")
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// annotations of the prime claim that tell CDI's import controller what to do.
func (s source) annotations() map[string]string {
	a := map[string]string{annSource: s.kind}
	for key, v := range map[string]string{annEndpoint: s.url, annSecret: s.secret, annCertConfigMap: s.certConfigMap, annChecksum: s.checksum} {
		if v != "" {
			a[key] = v
		}
	}
	return a
}

// needsScratch tells whether the first pod has scratch space already.
func (s source) needsScratch() bool { return s.kind == importer.SourceRegistry }
