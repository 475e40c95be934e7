package objects

import (
	"errors"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/importer"
)

// Source is where a DataVolume's disk comes from.
type Source struct {
	// Kind is one of the importer's sources.
	Kind string
	// URL of the image, empty when blank.
	URL string
	// Secret and CertConfigMap are names in the DataVolume's namespace, or empty.
	Secret, CertConfigMap string
	// Checksum as the DataVolume has it, http only.
	Checksum string
}

// SourceOf reads the source of an import; clones and the sources of other hypervisors are errors.
func SourceOf(dv *cdiv1.DataVolume) (Source, error) {
	s := dv.Spec.Source
	switch {
	case s == nil:
		return Source{}, errors.New("the simulator plays no DataVolume without spec.source")
	case s.HTTP != nil:
		return Source{importer.SourceHTTP, s.HTTP.URL, s.HTTP.SecretRef, s.HTTP.CertConfigMap, s.HTTP.Checksum}, nil
	case s.S3 != nil:
		return Source{importer.SourceS3, s.S3.URL, s.S3.SecretRef, s.S3.CertConfigMap, ""}, nil
	case s.Registry != nil:
		return Source{importer.SourceRegistry, value(s.Registry.URL), value(s.Registry.SecretRef), value(s.Registry.CertConfigMap), ""}, nil
	case s.Blank != nil:
		return Source{Kind: importer.SourceBlank}, nil
	default:
		return Source{}, errors.New("the simulator plays clones, and imports from http, s3, registry and blank")
	}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// annotations of the prime claim that tell CDI's import controller what to do.
func (s Source) annotations() map[string]string {
	a := map[string]string{AnnSource: s.Kind}
	for key, v := range map[string]string{AnnEndpoint: s.URL, AnnSecret: s.Secret, AnnCertConfigMap: s.CertConfigMap, AnnChecksum: s.Checksum} {
		if v != "" {
			a[key] = v
		}
	}
	return a
}

// NeedsScratch tells whether the first pod has scratch space already.
func (s Source) NeedsScratch() bool { return s.Kind == importer.SourceRegistry }
