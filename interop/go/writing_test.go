package interop

import (
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1apply "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "capstan.dev/interop/api/v1"
)

func TestServerSideApplyOfTypedConfigurations(t *testing.T) {
	namespace := namespaceFor(t)
	maps := clientset.CoreV1().ConfigMaps(namespace)
	alice, bob := metav1.ApplyOptions{FieldManager: "alice"}, metav1.ApplyOptions{FieldManager: "bob"}
	made, err := maps.Apply(background, corev1apply.ConfigMap("m", namespace).WithData(map[string]string{"a": "1", "b": "1"}), alice)
	must(t, err)
	again, err := maps.Apply(background, corev1apply.ConfigMap("m", namespace).WithData(map[string]string{"a": "1", "b": "1"}), alice)
	must(t, err)
	check(t, "resourceVersion after the same apply", again.ResourceVersion, made.ResourceVersion)

	_, err = maps.Apply(background, corev1apply.ConfigMap("m", namespace).WithData(map[string]string{"a": "2"}), bob)
	checkError(t, err, metav1.StatusReasonConflict, `Apply failed with 1 conflict: conflict with "alice": .data.a`)
	force := bob
	force.Force = true
	_, err = maps.Apply(background, corev1apply.ConfigMap("m", namespace).WithData(map[string]string{"a": "2"}), force)
	must(t, err)
	last, err := maps.Apply(background, corev1apply.ConfigMap("m", namespace).WithData(map[string]string{}), alice)
	must(t, err)
	check(t, "a field that only alice managed is removed", last.Data, map[string]string{"a": "2"})

	extracted, err := corev1apply.ExtractConfigMap(last, "bob")
	must(t, err)
	check(t, "bob's own configuration", extracted.Data, map[string]string{"a": "2"})

	_, err = maps.Apply(background, corev1apply.ConfigMap("m", namespace), metav1.ApplyOptions{})
	check(t, "without a manager", reasonOf(err), metav1.StatusReasonInvalid)

	deployments := clientset.AppsV1().Deployments(namespace)
	labels := map[string]string{"app": "d"}
	configuration := func(image string) *appsv1apply.DeploymentApplyConfiguration {
		return appsv1apply.Deployment("d", namespace).WithSpec(appsv1apply.DeploymentSpec().
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1apply.PodTemplateSpec().WithLabels(labels).WithSpec(corev1apply.PodSpec().WithContainers(
				corev1apply.Container().WithName("main").WithImage(image)))))
	}
	deployment, err := deployments.Apply(background, configuration("example.com/app:1"), alice)
	must(t, err)
	check(t, "defaulted", *deployment.Spec.Replicas, 1)
	check(t, "generation", deployment.Generation, 1)
	_, err = deployments.Apply(background, appsv1apply.Deployment("d", namespace).WithSpec(appsv1apply.DeploymentSpec().WithReplicas(3)), bob)
	must(t, err)
	deployment, err = deployments.Apply(background, configuration("example.com/app:2"), alice)
	must(t, err)
	check(t, "replicas, which bob owns", *deployment.Spec.Replicas, 3)
	check(t, "generation", deployment.Generation, 3)
}

func TestServerSideApplyOfCustomResources(t *testing.T) {
	namespace := namespaceFor(t)
	apply := func(owner string, spec string) error {
		object := unstructuredObject("shop.example.com/v1", "Widget", namespace, "w")
		object.SetLabels(map[string]string{"managed": "no"})
		var fields map[string]any
		must(t, json.Unmarshal([]byte(spec), &fields))
		object.Object["spec"] = fields
		return direct.Apply(background, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner))
	}
	must(t, apply("alice", `{"parts":[{"name":"a","quantity":2},{"name":"b"}]}`))
	must(t, apply("bob", `{"parts":[{"name":"c"}],"colour":"red"}`))
	now := &v1.Widget{}
	must(t, direct.Get(background, types.NamespacedName{Namespace: namespace, Name: "w"}, now))
	check(t, "parts of both", now.Spec.Parts, "[{a 2} {b 1} {c 1}]")
	checkError(t, apply("carol", `{"colour":"green"}`), metav1.StatusReasonConflict, `Apply failed with 1 conflict: conflict with "bob": .spec.colour`)
	must(t, apply("alice", `{"parts":[{"name":"b"}]}`))
	must(t, direct.Get(background, client.ObjectKeyFromObject(now), now))
	check(t, "remaining parts", now.Spec.Parts, "[{b 1} {c 1}]")

	// Cluster API changes managedFields with merge patches with optimistic locking, as here.
	before := now.DeepCopy()
	now.ManagedFields = nil
	must(t, direct.Patch(background, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

func TestPatches(t *testing.T) {
	namespace := namespaceFor(t)
	made := pod(namespace, "p")
	must(t, direct.Create(background, made))
	strategic := made.DeepCopy()
	strategic.Spec.Containers[0].Image = "example.com/app:2"
	strategic.Labels["more"] = "yes"
	must(t, direct.Patch(background, strategic, client.StrategicMergeFrom(made)))
	check(t, "image", strategic.Spec.Containers[0].Image, "example.com/app:2")
	check(t, "containers merge by name", len(strategic.Spec.Containers), 1)
	must(t, direct.Patch(background, strategic, client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"test","path":"/metadata/labels/more","value":"yes"},{"op":"remove","path":"/metadata/labels/more"}]`))))
	check(t, "labels", strategic.Labels, map[string]string{"app": "p"})
	err := direct.Patch(background, strategic, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/labels/none"}]`)))
	check(t, "a path that does not exist", reasonOf(err), metav1.StatusReasonInvalid)
	err = direct.Patch(background, widget(namespace, "none"), client.RawPatch(types.StrategicMergePatchType, []byte(`{}`)))
	check(t, "strategic merge patch of a custom resource", reasonOf(err), metav1.StatusReasonUnsupportedMediaType)

	_, err = controllerutil.CreateOrUpdate(background, direct, configMap(namespace, "cu", nil), func() error { return nil })
	must(t, err)
	patched := configMap(namespace, "cu", nil)
	result, err := controllerutil.CreateOrPatch(background, direct, patched, func() error { patched.Data = map[string]string{"x": "y"}; return nil })
	must(t, err)
	check(t, "create or patch", result, controllerutil.OperationResultUpdated)
}

func TestDeletions(t *testing.T) {
	namespace := namespaceFor(t)
	for name, set := range map[string]string{"a": "y", "b": "y", "c": "x"} {
		must(t, direct.Create(background, configMap(namespace, name, map[string]string{"set": set})))
	}
	must(t, direct.DeleteAllOf(background, &corev1.ConfigMap{}, client.InNamespace(namespace), client.MatchingLabels{"set": "y"}))
	list := &corev1.ConfigMapList{}
	must(t, direct.List(background, list, client.InNamespace(namespace)))
	check(t, "objects that remain", names(list.Items, (*corev1.ConfigMap).GetName), "c")

	uid := types.UID("wrong")
	err := direct.Delete(background, &list.Items[0], client.Preconditions{UID: &uid})
	check(t, "another uid", reasonOf(err), metav1.StatusReasonConflict)
	// No garbage collector runs, so an object that is deleted in the foreground keeps its finalizer.
	must(t, direct.Delete(background, &list.Items[0], client.PropagationPolicy(metav1.DeletePropagationForeground)))
	must(t, direct.Get(background, client.ObjectKeyFromObject(&list.Items[0]), &list.Items[0]))
	check(t, "finalizers", list.Items[0].Finalizers, []string{metav1.FinalizerDeleteDependents})
	list.Items[0].Finalizers = nil
	must(t, direct.Update(background, &list.Items[0]))
	err = direct.Get(background, client.ObjectKeyFromObject(&list.Items[0]), &list.Items[0])
	checkError(t, err, metav1.StatusReasonNotFound, `configmaps "c" not found`)
}

func TestEvictionsRespectBudgets(t *testing.T) {
	namespace := namespaceFor(t)
	running := func(name string) *corev1.Pod {
		made := pod(namespace, name)
		must(t, direct.Create(background, made))
		made.Status.Phase = corev1.PodRunning
		made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		must(t, direct.Status().Update(background, made))
		return made
	}
	free, kept := running("free"), running("kept")
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: labelled(namespace, "budget", nil)}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "kept"}}
	budget.Spec.MinAvailable = &one
	must(t, direct.Create(background, budget))
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1}
	must(t, direct.Status().Update(background, budget))

	evict := func(pod *corev1.Pod) error {
		return clientset.CoreV1().Pods(namespace).EvictV1(background, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}})
	}
	must(t, evict(free))
	err := evict(kept)
	check(t, "reason", reasonOf(err), metav1.StatusReasonTooManyRequests)
	check(t, "message", err, "Cannot evict pod as it would violate the pod's disruption budget.")
	check(t, "cause", hasCause(err, policyv1.DisruptionBudgetCause), true)
	other := pod(namespace, "free2")
	must(t, direct.Create(background, other))
	must(t, direct.SubResource("eviction").Create(background, other, &policyv1.Eviction{}))
}

func TestScaleSubresource(t *testing.T) {
	namespace := namespaceFor(t)
	labels := map[string]string{"app": "d"}
	deployment := &appsv1.Deployment{ObjectMeta: labelled(namespace, "d", labels)}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/app:1"}}
	must(t, direct.Create(background, deployment))
	must(t, direct.Create(background, widget(namespace, "w", unmanaged)))

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(clientset.Discovery()))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(clientset.Discovery()))
	must(t, err)
	for _, c := range []struct {
		resource schema.GroupResource
		name     string
	}{{appsv1.Resource("deployments"), "d"}, {schema.GroupResource{Group: "shop.example.com", Resource: "widgets"}, "w"}} {
		current, err := scales.Scales(namespace).Get(background, c.resource, c.name, metav1.GetOptions{})
		must(t, err)
		check(t, c.name, current.Spec.Replicas, 1)
		current.Spec.Replicas = 4
		current, err = scales.Scales(namespace).Update(background, c.resource, current, metav1.UpdateOptions{})
		must(t, err)
		check(t, c.name, current.Spec.Replicas, 4)
		_, err = scales.Scales(namespace).Patch(background, c.resource.WithVersion("v1"), c.name, types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{})
		must(t, err)
	}
	current := &autoscalingv1.Scale{}
	must(t, direct.SubResource("scale").Get(background, deployment, current))
	check(t, "by controller-runtime", current.Spec.Replicas, 5)
	check(t, "selector", current.Status.Selector, "app=d")
	must(t, direct.Get(background, client.ObjectKeyFromObject(deployment), deployment))
	check(t, "replicas", *deployment.Spec.Replicas, 5)
	_, err = scales.Scales(namespace).Get(background, corev1.Resource("configmaps"), "x", metav1.GetOptions{})
	check(t, "a resource without scale fails", err != nil, true)
}

func TestProtobufAndJSONAgree(t *testing.T) {
	namespace := namespaceFor(t)
	// The client encodes Kubernetes' own Go types as protobuf, and reads unstructured objects as JSON.
	yes := true
	ports := []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: labelled(namespace, "a", nil), BinaryData: map[string][]byte{"b": {0, 1, 255}}, Immutable: &yes},
		&corev1.Secret{ObjectMeta: labelled(namespace, "a", nil), Data: map[string][]byte{"p": []byte("w")}, Type: corev1.SecretTypeOpaque},
		&corev1.Service{ObjectMeta: labelled(namespace, "a", nil), Spec: corev1.ServiceSpec{Ports: ports, Selector: map[string]string{"a": "b"}}},
		&corev1.ServiceAccount{ObjectMeta: labelled(namespace, "a", nil)},
		pod(namespace, "a"),
		&resourcev1.ResourceClaim{ObjectMeta: labelled(namespace, "a", nil), Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "gpu.example.com",
				Selectors:       []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == 'gpu.example.com'"}}},
				Tolerations:     []resourcev1.DeviceToleration{{Key: "a"}},
			}}},
			Config: []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
				Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: "gpu.example.com", Parameters: runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
			}}},
		}}},
		&appsv1.StatefulSet{ObjectMeta: labelled(namespace, "a", nil), Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: labelled("", "", map[string]string{"a": "b"}), Spec: pod(namespace, "x").Spec},
		}},
	} {
		what := fmt.Sprintf("%T", object)
		if err := direct.Create(background, object); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		gvk, err := direct.GroupVersionKindFor(object)
		must(t, err)
		unstructured := unstructuredObject(gvk.GroupVersion().String(), gvk.Kind, namespace, "a")
		must(t, direct.Get(background, client.ObjectKeyFromObject(object), unstructured))
		typed, err := json.Marshal(object)
		must(t, err)
		check(t, what+" has the same uid", unstructured.GetUID(), object.GetUID())
		again := object.DeepCopyObject().(client.Object)
		unstructuredJSON, err := json.Marshal(unstructured)
		must(t, err)
		must(t, json.Unmarshal(unstructuredJSON, again))
		// Objects decoded into Go types lack apiVersion and kind, which JSON responses have.
		again.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
		againJSON, err := json.Marshal(again)
		must(t, err)
		check(t, what, string(againJSON), string(typed))
		must(t, direct.Delete(background, object))
	}
	err := direct.Create(background, configMap(namespace, "Not a name", nil))
	check(t, "an invalid name is rejected", apierrors.IsInvalid(err), true)
}
