package interop

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	runtimecache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "capstan.dev/interop/api/v1"
)

// informersOf returns an informer of ConfigMaps for each type of client (typed, typed with protobuf, unstructured, metadata), and an informer
// of Widgets for the last two types, which support custom resources.
func informersOf(t *testing.T, config *rest.Config, namespace string) map[string]cache.SharedIndexInformer {
	t.Helper()
	maps, widgets := corev1.SchemeGroupVersion.WithResource("configmaps"), v1.GroupVersion.WithResource("widgets")
	all := map[string]cache.SharedIndexInformer{}
	typed, err := kubernetes.NewForConfig(config)
	must(t, err)
	all["typed"] = informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace)).Core().V1().ConfigMaps().Informer()
	protobuf, err := kubernetes.NewForConfig(protobufConfig(config))
	must(t, err)
	all["protobuf"] = informers.NewSharedInformerFactoryWithOptions(protobuf, 0, informers.WithNamespace(namespace)).Core().V1().ConfigMaps().Informer()
	unstructuredClient, err := dynamic.NewForConfig(config)
	must(t, err)
	metadataClient, err := metadata.NewForConfig(config)
	must(t, err)
	unstructuredFactory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(unstructuredClient, 0, namespace, nil)
	metadataFactory := metadatainformer.NewFilteredSharedInformerFactory(metadataClient, 0, namespace, nil)
	all["unstructured"] = unstructuredFactory.ForResource(maps).Informer()
	all["unstructured, custom"] = unstructuredFactory.ForResource(widgets).Informer()
	all["metadata"] = metadataFactory.ForResource(maps).Informer()
	all["metadata, custom"] = metadataFactory.ForResource(widgets).Informer()
	return all
}

func protobufConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func TestInformersOfEveryTypeReceiveChanges(t *testing.T) {
	namespace := namespaceFor(t)
	log := &requestLog{}
	logged := configFor(func(c *rest.Config) { c.Wrap(log.wrap) })
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for i := range 3 {
		must(t, direct.Create(background, configMap(namespace, numbered(i), nil)))
		must(t, direct.Create(background, widget(namespace, numbered(i), unmanaged)))
	}
	all := informersOf(t, logged, namespace)
	for clientType, informer := range all {
		go informer.RunWithContext(ctx)
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			t.Fatalf("%s did not sync", clientType)
		}
		check(t, clientType+": objects after the sync", len(informer.GetStore().List()), 3)
	}
	check(t, "streaming lists", log.count("sendInitialEvents=true"), len(all))
	check(t, "streaming and other lists together", log.informerLists(), len(all))

	must(t, direct.Delete(background, configMap(namespace, numbered(0), nil)))
	must(t, direct.Create(background, configMap(namespace, "late", map[string]string{"l": "1"})))
	must(t, direct.Delete(background, widget(namespace, numbered(0))))
	must(t, direct.Create(background, widget(namespace, "late", unmanaged)))
	for clientType, informer := range all {
		eventually(t, func() error {
			_, hasNew, err := informer.GetStore().GetByKey(namespace + "/late")
			_, hasDeleted, _ := informer.GetStore().GetByKey(namespace + "/" + numbered(0))
			if err == nil && (!hasNew || hasDeleted) {
				err = fmt.Errorf("%s: has the new object: %t, has the deleted object: %t", clientType, hasNew, hasDeleted)
			}
			return err
		})
	}
}

func TestListAndWatchWithoutStreamingLists(t *testing.T) {
	namespace := namespaceFor(t)
	one := configMap(namespace, "one", nil)
	must(t, direct.Create(background, one))
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	// Sends a list and a watch, as an informer does that does not use streaming lists.
	maps := clientset.CoreV1().ConfigMaps(namespace)
	// An informer lists with resourceVersion 0, but that response could lack the object just created. With NotOlderThan, the server waits until
	// its watch cache has the object.
	list, err := maps.List(ctx, metav1.ListOptions{
		ResourceVersion:      one.ResourceVersion,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	must(t, err)
	watching, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	must(t, err)
	defer watching.Stop()
	must(t, direct.Create(background, configMap(namespace, "two", nil)))
	check(t, "first event after the list", next(t, watching).Object.(*corev1.ConfigMap).Name, "two")
}

func TestCacheOfControllerRuntimeReceivesChanges(t *testing.T) {
	namespace := namespaceFor(t)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	widgetCache, err := runtimecache.New(config, runtimecache.Options{
		Scheme:            scheme,
		DefaultNamespaces: map[string]runtimecache.Config{namespace: {}},
	})
	must(t, err)
	must(t, widgetCache.IndexField(ctx, &v1.Widget{}, "spec.colour", func(o client.Object) []string { return []string{o.(*v1.Widget).Spec.Colour} }))
	go func() { _ = widgetCache.Start(ctx) }()
	must(t, direct.Create(background, widget(namespace, "red", unmanaged, func(w *v1.Widget) { w.Spec.Colour = "red" })))
	must(t, direct.Create(background, widget(namespace, "blue", unmanaged)))
	eventually(t, func() error {
		widgets := &v1.WidgetList{}
		if err := widgetCache.List(ctx, widgets, client.MatchingFields{"spec.colour": "red"}); err != nil {
			return err
		}
		if len(widgets.Items) != 1 || widgets.Items[0].Name != "red" {
			return fmt.Errorf("%d widgets by index", len(widgets.Items))
		}
		return nil
	})
	partial := &metav1.PartialObjectMetadataList{}
	partial.SetGroupVersionKind(v1.GroupVersion.WithKind("WidgetList"))
	eventually(t, func() error {
		if err := widgetCache.List(ctx, partial); err != nil {
			return err
		}
		if len(partial.Items) != 2 {
			return fmt.Errorf("%d widgets as metadata", len(partial.Items))
		}
		return nil
	})
	unstructuredList := &unstructured.UnstructuredList{}
	unstructuredList.SetGroupVersionKind(v1.GroupVersion.WithKind("WidgetList"))
	eventually(t, func() error {
		if err := widgetCache.List(ctx, unstructuredList); err != nil || len(unstructuredList.Items) != 2 {
			return fmt.Errorf("%d unstructured widgets, error %v", len(unstructuredList.Items), err)
		}
		return nil
	})
}
