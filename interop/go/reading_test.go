package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "capstan.dev/interop/api/v1"
)

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: labelled(namespace, name, labels), Data: map[string]string{"name": name}}
}

func TestPagesAreOfOneRevision(t *testing.T) {
	namespace := namespaceFor(t)
	maps := clientset.CoreV1().ConfigMaps(namespace)
	for i := range 7 {
		_, err := maps.Create(background, configMap(namespace, numbered(i), nil), metav1.CreateOptions{})
		must(t, err)
	}
	first, err := maps.List(background, metav1.ListOptions{Limit: 3})
	must(t, err)
	check(t, "first page", names(first.Items, (*corev1.ConfigMap).GetName), "n000,n001,n002")
	check(t, "remaining items", *first.RemainingItemCount, 4)
	must(t, maps.Delete(background, "n004", metav1.DeleteOptions{}))
	second, err := maps.List(background, metav1.ListOptions{Limit: 3, Continue: first.Continue})
	must(t, err)
	check(t, "second page, with the object that was deleted in the meantime", names(second.Items, (*corev1.ConfigMap).GetName), "n003,n004,n005")
	check(t, "the second page has the revision of the first", second.ResourceVersion, first.ResourceVersion)
	last, err := maps.List(background, metav1.ListOptions{Limit: 3, Continue: second.Continue})
	must(t, err)
	check(t, "last page", names(last.Items, (*corev1.ConfigMap).GetName), "n006")
	check(t, "continue token of the last page", last.Continue, "")
	_, err = maps.List(background, metav1.ListOptions{Continue: first.Continue, ResourceVersion: "1"})
	checkError(t, err, metav1.StatusReasonBadRequest, "specifying resource version is not allowed when using continue")

	list := &corev1.ConfigMapList{}
	must(t, direct.List(background, list, client.InNamespace(namespace), client.Limit(2)))
	check(t, "items of a page in controller-runtime", len(list.Items), 2)
}

func TestResourceVersionsSelectRevisions(t *testing.T) {
	namespace := namespaceFor(t)
	maps := clientset.CoreV1().ConfigMaps(namespace)
	one, err := maps.Create(background, configMap(namespace, "one", nil), metav1.CreateOptions{})
	must(t, err)
	two, err := maps.Create(background, configMap(namespace, "two", nil), metav1.CreateOptions{})
	must(t, err)

	for _, c := range []struct {
		what    string
		options metav1.ListOptions
		count   int
	}{
		{"most recent", metav1.ListOptions{}, 2},
		{"any, which ignores the limit", metav1.ListOptions{ResourceVersion: "0", Limit: 1}, 2},
		{"not older than", metav1.ListOptions{ResourceVersion: two.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, 2},
		{"exactly", metav1.ListOptions{ResourceVersion: one.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}, 1},
		{"exactly, because there is a limit and no resourceVersionMatch", metav1.ListOptions{ResourceVersion: one.ResourceVersion, Limit: 10}, 1},
	} {
		// The server may respond from a cache that does not have all objects yet.
		eventually(t, func() error {
			list, err := maps.List(background, c.options)
			if err == nil && len(list.Items) != c.count {
				err = fmt.Errorf("%s: %d items, want %d", c.what, len(list.Items), c.count)
			}
			return err
		})
	}
	_, err = maps.List(background, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	checkError(t, err, metav1.StatusReasonInvalid,
		`ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided`)
	// By default the client would repeat the request ten times.
	err = clientset.CoreV1().RESTClient().Get().Namespace(namespace).Resource("configmaps").Param("resourceVersion", "99999999").MaxRetries(0).Do(background).Error()
	if err == nil {
		t.Fatal("a list at a future resourceVersion succeeded")
	}
	check(t, "reason for a future resourceVersion", reasonOf(err), metav1.StatusReasonTimeout)
	check(t, "has the cause ResourceVersionTooLarge", hasCause(err, metav1.CauseTypeResourceVersionTooLarge), true)

	_, err = maps.Patch(background, "one", "application/merge-patch+json",
		[]byte(fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"data":{"a":"b"}}`, "1")), metav1.PatchOptions{})
	checkError(t, err, metav1.StatusReasonConflict,
		`Operation cannot be fulfilled on configmaps "one": the object has been modified; please apply your changes to the latest version and try again`)
	err = maps.Delete(background, "one", *metav1.NewRVDeletionPrecondition("1"))
	checkError(t, err, metav1.StatusReasonConflict, fmt.Sprintf(
		`Operation cannot be fulfilled on ConfigMap "one": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (%s). The object might have been modified`, one.ResourceVersion))
}

func TestSelectorsSelectObjects(t *testing.T) {
	namespace := namespaceFor(t)
	for name, labels := range map[string]map[string]string{
		"a": {"tier": "front", "track": "stable"}, "b": {"tier": "back"}, "c": {"tier": "front", "track": "canary"}, "d": nil,
	} {
		must(t, direct.Create(background, configMap(namespace, name, labels)))
	}
	for selector, want := range map[string]string{
		"tier=front": "a,c", "tier!=front": "b,d", "tier in (front,back),track": "a,c", "!tier": "d",
		"track notin (canary)": "a,b,d", "tier==back": "b", "tier,!track": "b",
	} {
		list, err := clientset.CoreV1().ConfigMaps(namespace).List(background, metav1.ListOptions{LabelSelector: selector})
		must(t, err)
		check(t, selector, names(list.Items, (*corev1.ConfigMap).GetName), want)
	}
	for selector, want := range map[string]string{
		"metadata.name=b": "b", "metadata.name!=b": "a,c,d", "metadata.namespace=" + namespace: "a,b,c,d", "metadata.name=b,metadata.name=c": "",
	} {
		list, err := clientset.CoreV1().ConfigMaps(namespace).List(background, metav1.ListOptions{FieldSelector: selector})
		must(t, err)
		check(t, selector, names(list.Items, (*corev1.ConfigMap).GetName), want)
	}
	_, err := clientset.CoreV1().ConfigMaps(namespace).List(background, metav1.ListOptions{FieldSelector: "data.name=a"})
	checkError(t, err, metav1.StatusReasonBadRequest,
		`"data.name" is not a known field selector: only "metadata.name", "metadata.namespace"`)

	must(t, direct.Create(background, &corev1.Secret{ObjectMeta: labelled(namespace, "opaque", nil)}))
	must(t, direct.Create(background, &corev1.Secret{ObjectMeta: labelled(namespace, "typed", nil), Type: "example.com/own"}))
	secrets, err := clientset.CoreV1().Secrets(namespace).List(background, metav1.ListOptions{FieldSelector: "type=Opaque"})
	must(t, err)
	check(t, "secrets by type", names(secrets.Items, (*corev1.Secret).GetName), "opaque")

	must(t, direct.Create(background, widget(namespace, "red", unmanaged, func(w *v1.Widget) { w.Spec.Colour = "red" })))
	must(t, direct.Create(background, widget(namespace, "blue", unmanaged)))
	widgets := &v1.WidgetList{}
	must(t, direct.List(background, widgets, client.InNamespace(namespace), client.MatchingFields{"spec.colour": "red"}))
	check(t, "by a selectable field", names(widgets.Items, (*v1.Widget).GetName), "red")
	err = direct.List(background, widgets, client.InNamespace(namespace), client.MatchingFields{"spec.size": "3"})
	check(t, "by a field that is not selectable", reasonOf(err), metav1.StatusReasonBadRequest)
}

func TestPodsAreSelectedByNodeAndPhase(t *testing.T) {
	namespace := namespaceFor(t)
	for name, node := range map[string]string{"a": "n1", "b": "n2"} {
		must(t, direct.Create(background, pod(namespace, name, func(p *corev1.Pod) { p.Spec.NodeName = node })))
	}
	list, err := clientset.CoreV1().Pods(namespace).List(background, metav1.ListOptions{FieldSelector: "spec.nodeName=n1,status.phase=Pending"})
	must(t, err)
	check(t, "on n1", names(list.Items, (*corev1.Pod).GetName), "a")
}

func pod(namespace, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: labelled(namespace, name, map[string]string{"app": name})}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/app:1"}}
	for _, change := range change {
		change(pod)
	}
	return pod
}

// next waits for the next event that is not a bookmark, and returns it.
func next(t *testing.T, watching watch.Interface) watch.Event {
	t.Helper()
	for {
		select {
		case event, open := <-watching.ResultChan():
			if !open {
				t.Fatal("the watch ended")
			}
			if event.Type != watch.Bookmark {
				return event
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no event within 10 seconds")
		}
	}
}

func TestWatchesReportChanges(t *testing.T) {
	namespace := namespaceFor(t)
	maps := clientset.CoreV1().ConfigMaps(namespace)
	one, err := maps.Create(background, configMap(namespace, "one", map[string]string{"seen": "yes"}), metav1.CreateOptions{})
	must(t, err)
	all, err := maps.Watch(background, metav1.ListOptions{ResourceVersion: one.ResourceVersion})
	must(t, err)
	defer all.Stop()
	some, err := maps.Watch(background, metav1.ListOptions{LabelSelector: "seen=yes"})
	must(t, err)
	defer some.Stop()
	nextEvent := func(watching watch.Interface) string {
		event := next(t, watching)
		object := event.Object.(*corev1.ConfigMap)
		return fmt.Sprintf("%s %s %s", event.Type, object.Name, object.Labels["seen"])
	}
	check(t, "a watch without resourceVersion begins with the existing object", nextEvent(some), "ADDED one yes")

	_, err = maps.Patch(background, "one", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"seen":"no"}}}`), metav1.PatchOptions{})
	must(t, err)
	check(t, "all", nextEvent(all), "MODIFIED one no")
	check(t, "an object that no longer matches is reported as deleted, in its previous state", nextEvent(some), "DELETED one yes")
	_, err = maps.Patch(background, "one", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"seen":"yes"}}}`), metav1.PatchOptions{})
	must(t, err)
	check(t, "all", nextEvent(all), "MODIFIED one yes")
	check(t, "an object that matches again is reported as added", nextEvent(some), "ADDED one yes")
	must(t, maps.Delete(background, "one", metav1.DeleteOptions{}))
	check(t, "all", nextEvent(all), "DELETED one yes")
	check(t, "some", nextEvent(some), "DELETED one yes")
}

func TestWatchSendsBookmarksAfterInitialEvents(t *testing.T) {
	namespace := namespaceFor(t)
	maps := clientset.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(background, configMap(namespace, "one", nil), metav1.CreateOptions{})
	must(t, err)
	yes, timeout := true, int64(3)
	ctx, cancel := context.WithTimeout(background, 30*time.Second)
	defer cancel()
	watching, err := maps.Watch(ctx, metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, TimeoutSeconds: &timeout,
	})
	must(t, err)
	var events []string
	for event := range watching.ResultChan() {
		object := event.Object.(*corev1.ConfigMap)
		line := fmt.Sprintf("%s %s", event.Type, object.Name)
		if object.Annotations["k8s.io/initial-events-end"] == "true" {
			line += "initial-events-end"
		}
		events = append(events, line)
	}
	check(t, "first", events[0], "ADDED one")
	check(t, "second", events[1], "BOOKMARK initial-events-end")
	for _, line := range events[2:] {
		check(t, "later", line, "BOOKMARK ")
	}

	_, err = maps.Watch(background, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true})
	check(t, "without resourceVersionMatch", reasonOf(err), metav1.StatusReasonInvalid)
}
