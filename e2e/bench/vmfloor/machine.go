package main

import (
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type fields = map[string]any

// machine is KubeVirt's, as the operator makes it.
func machine(vm *otv1alpha1.VirtualMachine) runtime.ApplyConfiguration {
	child, o := otv1alpha1.VirtualMachineChild(vm), owner(vm)
	labelled := fields{}
	for key, value := range labels(vm) {
		labelled[key] = value
	}
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
		"metadata": fields{
			"name": vm.Name, "namespace": vm.Namespace, "labels": labelled,
			"ownerReferences": []any{fields{
				"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": string(o.UID), "controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": fields{
			"runStrategy": string(vm.WantedStrategy()),
			"template":    fields{"metadata": fields{"labels": labelled}, "spec": guest(vm, child)},
		},
	}})
}

func guest(vm *otv1alpha1.VirtualMachine, child string) fields {
	return fields{
		"domain": fields{
			"cpu": fields{"cores": vm.Spec.Resources.CPU.Value()}, "memory": fields{"guest": vm.Spec.Resources.Memory.String()},
			"resources": fields{"requests": fields{"cpu": vm.Spec.Resources.CPU.String()}},
			"firmware":  fields{"uuid": string(vm.UID), "serial": string(vm.UID)},
			"devices": fields{
				"disks": []any{
					fields{"name": "rootdisk", "bootOrder": int64(1), "disk": fields{"bus": "virtio"}},
					fields{"name": "cloudinitdisk", "disk": fields{"bus": "virtio"}},
				},
				"interfaces": []any{fields{"name": "pod", "masquerade": fields{}, "macAddress": mac(vm)}},
				"rng":        fields{},
			},
		},
		"networks": []any{fields{"name": "pod", "pod": fields{}}},
		"volumes": []any{
			fields{"name": "rootdisk", "dataVolume": fields{"name": child}},
			fields{"name": "cloudinitdisk", "cloudInitNoCloud": fields{
				"secretRef": fields{"name": child}, "networkDataSecretRef": fields{"name": child},
			}},
		},
	}
}
