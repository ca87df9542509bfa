package interop

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1 "capstan.dev/interop/api/v1"
	"capstan.dev/interop/api/v1beta1"
	"capstan.dev/interop/controller"
)

func widget(namespace, name string, change ...func(*v1.Widget)) *v1.Widget {
	widget := &v1.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, change := range change {
		change(widget)
	}
	return widget
}

func unmanaged(widget *v1.Widget) { widget.Labels = map[string]string{"managed": "no"} }

func sized(size int32) func(*v1.Widget) { return func(widget *v1.Widget) { widget.Spec.Size = size } }

func TestWidgetLifecycle(t *testing.T) {
	namespace := namespaceFor(t)
	made := widget(namespace, "life", sized(4))
	must(t, direct.Create(background, made))
	check(t, "defaulted by the webhook", made.Annotations["shop.example.com/defaulted"], "yes")
	check(t, "defaulted by the schema", made.Spec.Colour, "blue")
	check(t, "generation", made.Generation, 1)

	key := client.ObjectKeyFromObject(made)
	eventually(t, func() error {
		now := &v1.Widget{}
		if err := cached.Get(background, key, now); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(now.Status.Conditions, "Ready") {
			return fmt.Errorf("not Ready: %+v", now.Status)
		}
		return nil
	})
	must(t, direct.Get(background, key, made))
	check(t, "finalizers", made.Finalizers, []string{controller.Finalizer})
	check(t, "generation after a write of the status", made.Generation, 1)
	box := &corev1.ConfigMap{}
	must(t, direct.Get(background, key, box))
	check(t, "box", box.Data["size"], "4")
	check(t, "owner", metav1.IsControlledBy(box, made), true)

	made.Spec.Size = 5
	must(t, direct.Update(background, made))
	eventually(t, func() error {
		if err := cached.Get(background, key, box); err != nil {
			return err
		}
		if box.Data["size"] != "5" {
			return fmt.Errorf("the box has size %s", box.Data["size"])
		}
		return nil
	})

	must(t, direct.Delete(background, made))
	eventually(t, func() error {
		if err := direct.Get(background, key, made); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Widget still exists: %v", err)
		}
		return nil
	})
	must(t, direct.Get(background, key, box)) // No garbage collector runs, so the box still exists.
}

func TestEventsOfBothGroupsAreRecorded(t *testing.T) {
	namespace := namespaceFor(t)
	must(t, direct.Create(background, widget(namespace, "loud")))
	eventually(t, func() error {
		coreEvents, err := clientset.CoreV1().Events(namespace).List(background, metav1.ListOptions{FieldSelector: "involvedObject.name=loud,reason=Adopted"})
		if err != nil {
			return err
		}
		events, err := clientset.EventsV1().Events(namespace).List(background, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var notes []string
		for _, event := range events.Items {
			notes = append(notes, event.Note)
		}
		if len(coreEvents.Items) != 2 || len(notes) != 2 {
			return fmt.Errorf("%d events in core/v1, notes in events.k8s.io %q", len(coreEvents.Items), notes)
		}
		return nil
	})
	regarding := &eventsv1.EventList{}
	must(t, direct.List(background, regarding, client.InNamespace(namespace), client.MatchingFields{"regarding.name": "loud"}))
	check(t, "events regarding the Widget", len(regarding.Items), 2)
}

func TestAdmissionRejectsAndDefaults(t *testing.T) {
	namespace := namespaceFor(t)
	checkError(t, direct.Create(background, widget(namespace, "unlucky", sized(13))), metav1.StatusReasonForbidden,
		`admission webhook "validate.widgets.shop.example.com" denied the request: thirteen brings bad luck`)
	checkError(t, direct.Create(background, widget(namespace, "huge", sized(101))), metav1.StatusReasonInvalid,
		`Widget.shop.example.com "huge" is invalid: spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100`)

	keep := widget(namespace, "keep", unmanaged)
	keep.Labels["keep"] = "yes"
	must(t, direct.Create(background, keep))
	checkError(t, direct.Delete(background, keep), metav1.StatusReasonForbidden,
		`admission webhook "validate.widgets.shop.example.com" denied the request: widget keep must not be deleted`)
	keep.Spec.Size = 1
	checkError(t, direct.Update(background, keep), metav1.StatusReasonInvalid,
		`Widget.shop.example.com "keep" is invalid: spec: Invalid value: only grey widgets shrink`)

	dry := widget(namespace, "dry", unmanaged)
	must(t, direct.Create(background, dry, client.DryRunAll))
	check(t, "defaulted in a dry run", dry.Annotations["shop.example.com/defaulted"], "yes")
	check(t, "not stored by a dry run", apierrors.IsNotFound(direct.Get(background, client.ObjectKeyFromObject(dry), dry)), true)
}

func TestWarningsReachTheClient(t *testing.T) {
	namespace := namespaceFor(t)
	warnings := &warningList{}
	config := configFor(func(c *rest.Config) { c.WarningHandler = warnings })
	must(t, restClientFor(t, config).Post().Namespace(namespace).Resource("widgets").Body(widget(namespace, "large", unmanaged, sized(60))).Do(background).Error())
	check(t, "warnings", warnings.texts(), []string{"that is a large widget"})
}

func TestVersionsAreConvertedByTheWebhook(t *testing.T) {
	namespace := namespaceFor(t)
	old := &v1beta1.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "old", Labels: map[string]string{"managed": "no"}}}
	old.Spec.Length = "7cm"
	must(t, direct.Create(background, old))
	now := &v1.Widget{}
	key := client.ObjectKeyFromObject(old)
	must(t, direct.Get(background, key, now))
	check(t, "size", now.Spec.Size, 7)
	now.Spec.Size = 9
	must(t, direct.Update(background, now))
	must(t, direct.Get(background, key, old))
	check(t, "length", old.Spec.Length, "9cm")
	list := &v1beta1.WidgetList{}
	must(t, direct.List(background, list, client.InNamespace(namespace)))
	check(t, "listed in the old version", list.Items[0].Spec.Length, "9cm")

	bad := &v1beta1.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bad"}}
	bad.Spec.Length = "long"
	checkError(t, direct.Create(background, bad), metav1.StatusReasonInternalError,
		`Internal error occurred: Internal error occurred: conversion webhook for shop.example.com/v1beta1, Kind=Widget failed: length "long" is not a number of cm`)
}

func TestStatusAndSpecAreWrittenSeparately(t *testing.T) {
	namespace := namespaceFor(t)
	made := widget(namespace, "apart", unmanaged)
	made.Status.Replicas = 7
	must(t, direct.Create(background, made))
	check(t, "status of a create", made.Status.Replicas, 0)
	made.Status.Replicas = 2
	made.Spec.Size = 99
	must(t, direct.Status().Update(background, made))
	check(t, "status", made.Status.Replicas, 2)
	check(t, "spec of a status update", made.Spec.Size, 3)
	check(t, "generation", made.Generation, 1)

	stale := made.DeepCopy()
	made.Spec.Colour = "red"
	must(t, direct.Update(background, made))
	check(t, "generation", made.Generation, 2)
	checkError(t, direct.Update(background, stale), metav1.StatusReasonConflict,
		`Operation cannot be fulfilled on widgets.shop.example.com "apart": the object has been modified; please apply your changes to the latest version and try again`)
	before := made.ResourceVersion
	must(t, direct.Update(background, made))
	check(t, "an update that changes nothing", made.ResourceVersion, before)
}

func TestTerminatingNamespacesRejectCreates(t *testing.T) {
	namespace := namespaceFor(t)
	must(t, direct.Create(background, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "left"}}))
	must(t, clientset.CoreV1().Namespaces().Delete(background, namespace, metav1.DeleteOptions{}))
	now, err := clientset.CoreV1().Namespaces().Get(background, namespace, metav1.GetOptions{})
	must(t, err)
	check(t, "phase", now.Status.Phase, corev1.NamespaceTerminating)
	err = direct.Create(background, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}})
	checkError(t, err, metav1.StatusReasonForbidden, fmt.Sprintf(
		`configmaps "late" is forbidden: unable to create new content in namespace %s because it is being terminated`, namespace))
}

func TestCRDsAreInstalledAndUninstalled(t *testing.T) {
	options := envtest.CRDInstallOptions{Paths: []string{"testdata/gadgets.yaml"}}
	_, err := envtest.InstallCRDs(config, options)
	must(t, err)
	namespace := namespaceFor(t)
	gadget := unstructuredObject("gear.example.com/v1", "Gadget", namespace, "one")
	eventually(t, func() error { return direct.Create(background, gadget) })
	must(t, envtest.UninstallCRDs(config, options))
	eventually(t, func() error {
		if err := direct.Get(background, client.ObjectKeyFromObject(gadget), gadget); err == nil {
			return fmt.Errorf("still served")
		}
		return nil
	})
}
