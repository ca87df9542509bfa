// Converts objects between API versions with upstream's conversions: each line of stdin is a Request, each line of stdout a Response.
// `conversion-peer types` instead prints the Go types of every kind, for scripts/upstream-versions.ts: the JSON of a converted object
// depends on them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/core/webhooks/conversion"
)

type object interface {
	metav1.Object
	runtime.Object
}

// version is a version of a kind that is served, but not stored, with its conversions to and from the stored version (the hub).
type version struct {
	apiVersion string
	empty      func() object
	hub        func() object
	toHub      func(ctx context.Context, from, to object) error
	fromHub    func(ctx context.Context, from, to object) error
}

func versionOf[Spoke, Hub any, PS interface {
	*Spoke
	object
}, PH interface {
	*Hub
	object
}](gv schema.GroupVersion, toHub func(context.Context, PS, PH) error, fromHub func(context.Context, PH, PS) error) version {
	return version{
		apiVersion: gv.String(),
		empty:      func() object { return PS(new(Spoke)) },
		hub:        func() object { return PH(new(Hub)) },
		toHub:      func(ctx context.Context, from, to object) error { return toHub(ctx, from.(PS), to.(PH)) },
		fromHub:    func(ctx context.Context, from, to object) error { return fromHub(ctx, from.(PH), to.(PS)) },
	}
}

// versions are the versions of each kind that are served, but not stored. The stored version is v1beta2 of the same group.
var versions = map[string][]version{
	"Cluster":                   {versionOf(clusterv1beta1.GroupVersion, conversion.ConvertClusterV1Beta1ToHub, conversion.ConvertClusterHubToV1Beta1)},
	"ClusterClass":              {versionOf(clusterv1beta1.GroupVersion, conversion.ConvertClusterClassV1Beta1ToHub, conversion.ConvertClusterClassHubToV1Beta1)},
	"Machine":                   {versionOf(clusterv1beta1.GroupVersion, conversion.ConvertMachineV1Beta1ToHub, conversion.ConvertMachineHubToV1Beta1)},
	"MachineSet":                {versionOf(clusterv1beta1.GroupVersion, conversion.ConvertMachineSetV1Beta1ToHub, conversion.ConvertMachineSetHubToV1Beta1)},
	"MachineDeployment":         {versionOf(clusterv1beta1.GroupVersion, conversion.ConvertMachineDeploymentV1Beta1ToHub, conversion.ConvertMachineDeploymentHubToV1Beta1)},
	"MachinePool":               {versionOf(clusterv1beta1.GroupVersion, conversion.ConvertMachinePoolV1Beta1ToHub, conversion.ConvertMachinePoolHubToV1Beta1)},
	"MachineHealthCheck":        {versionOf(clusterv1beta1.GroupVersion, conversion.ConvertMachineHealthCheckV1Beta1ToHub, conversion.ConvertMachineHealthCheckHubToV1Beta1)},
	"MachineDrainRule":          {versionOf(clusterv1beta1.GroupVersion, conversion.ConvertMachineDrainRuleV1Beta1ToHub, conversion.ConvertMachineDrainRuleHubToV1Beta1)},
	"ClusterResourceSet":        {versionOf(addonsv1beta1.GroupVersion, conversion.ConvertClusterResourceSetV1Beta1ToHub, conversion.ConvertClusterResourceSetHubToV1Beta1)},
	"ClusterResourceSetBinding": {versionOf(addonsv1beta1.GroupVersion, conversion.ConvertClusterResourceSetBindingV1Beta1ToHub, conversion.ConvertClusterResourceSetBindingHubToV1Beta1)},
	"IPAddress": {
		versionOf(ipamv1alpha1.GroupVersion, conversion.ConvertIPAddressV1Alpha1ToHub, conversion.ConvertIPAddressHubToV1Alpha1),
		versionOf(ipamv1beta1.GroupVersion, conversion.ConvertIPAddressV1Beta1ToHub, conversion.ConvertIPAddressHubToV1Beta1),
	},
	"IPAddressClaim": {
		versionOf(ipamv1alpha1.GroupVersion, conversion.ConvertIPAddressClaimV1Alpha1ToHub, conversion.ConvertIPAddressClaimHubToV1Alpha1),
		versionOf(ipamv1beta1.GroupVersion, conversion.ConvertIPAddressClaimV1Beta1ToHub, conversion.ConvertIPAddressClaimHubToV1Beta1),
	},
	"ExtensionConfig": {versionOf(runtimev1alpha1.GroupVersion, conversion.ConvertExtensionConfigV1Alpha1ToHub, conversion.ConvertExtensionConfigHubToV1Alpha1)},
}

// hubs are the apiVersions of the stored versions by group.
var hubs = map[string]string{
	clusterv1.GroupVersion.Group: clusterv1.GroupVersion.String(),
	addonsv1.GroupVersion.Group:  addonsv1.GroupVersion.String(),
	ipamv1.GroupVersion.Group:    ipamv1.GroupVersion.String(),
	runtimev1.GroupVersion.Group: runtimev1.GroupVersion.String(),
}

type Request struct {
	// The apiVersion to which the object is converted.
	APIVersion string          `json:"apiVersion"`
	Object     json.RawMessage `json:"object"`
}

type Response struct {
	Object json.RawMessage `json:"object,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func convert(request Request) (object, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(request.Object, &meta); err != nil {
		return nil, err
	}
	for _, spoke := range versions[meta.Kind] {
		toHub := spoke.apiVersion == meta.APIVersion
		if !toHub && spoke.apiVersion != request.APIVersion {
			continue
		}
		from, to := spoke.hub(), spoke.empty()
		if toHub {
			from, to = spoke.empty(), spoke.hub()
		}
		if err := json.Unmarshal(request.Object, from); err != nil {
			return nil, err
		}
		run := spoke.fromHub
		if toHub {
			run = spoke.toHub
		}
		if err := run(context.Background(), from, to); err != nil {
			return nil, err
		}
		to.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(request.APIVersion, meta.Kind))
		return to, nil
	}
	return nil, fmt.Errorf("no conversion of %s %s to %s", meta.APIVersion, meta.Kind, request.APIVersion)
}

// respond returns the Response to a line of stdin, which is a Request as JSON.
func respond(line []byte) Response {
	var request Request
	if err := json.Unmarshal(line, &request); err != nil {
		return Response{Error: err.Error()}
	}
	converted, err := convert(request)
	if err != nil {
		return Response{Error: err.Error()}
	}
	text, err := json.Marshal(converted)
	if err != nil {
		return Response{Error: err.Error()}
	}
	return Response{Object: text}
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	if len(os.Args) > 1 && os.Args[1] == "types" {
		printTypes(out)
		return
	}
	// Upstream reads the version of a referenced kind from the contract labels of its CustomResourceDefinition. There is none here, so the
	// version is fixed.
	conversion.SetAPIVersionGetter(func(_ context.Context, gk schema.GroupKind) (string, error) {
		return schema.GroupVersion{Group: gk.Group, Version: "v1beta9"}.String(), nil
	})
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	encoder := json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(respond(line)); err != nil {
				panic(err)
			}
			if lines.Buffered() == 0 {
				out.Flush()
			}
		}
		if err != nil {
			return
		}
	}
}
