package interop

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1 "capstan.dev/interop/api/v1"
)

func TestAggregatedAndLegacyDiscoveryAgree(t *testing.T) {
	log := &requestLog{}
	aggregated, err := discovery.NewDiscoveryClientForConfig(configFor(func(c *rest.Config) { c.Wrap(log.wrap) }))
	must(t, err)
	legacy, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	legacy.UseLegacyDiscovery = true
	resourcesOf := func(lists []*metav1.APIResourceList) map[string]string {
		all := map[string]string{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				if strings.Contains(r.Name, "/") {
					r.SingularName = "" // client-go copies this name from the parent resource, but only in aggregated discovery.
				}
				all[list.GroupVersion+" "+r.Name] = fmt.Sprintf("%s %t %v %v %v %s", r.Kind, r.Namespaced, r.Verbs, r.ShortNames, r.Categories, r.SingularName)
			}
		}
		return all
	}
	var fromAggregated, fromLegacy map[string]string
	attempts := 0
	// The kind of a CRD that was just deleted may disappear from one form of discovery earlier than from the other form.
	eventually(t, func() error {
		attempts++
		groups, resources, err := aggregated.ServerGroupsAndResources()
		if err != nil {
			return err
		}
		legacyGroups, legacyResources, err := legacy.ServerGroupsAndResources()
		if err != nil {
			return err
		}
		fromAggregated, fromLegacy = resourcesOf(resources), resourcesOf(legacyResources)
		if len(groups) != len(legacyGroups) || len(fromAggregated) != len(fromLegacy) {
			return fmt.Errorf("aggregated: %d groups, %d resources; legacy: %d groups, %d resources", len(groups), len(fromAggregated), len(legacyGroups), len(fromLegacy))
		}
		return nil
	})
	check(t, "requests for aggregated discovery", log.count("GET /api"), 2*attempts)
	for resource, text := range fromAggregated {
		check(t, resource, text, fromLegacy[resource])
	}
	check(t, "resources", len(fromAggregated), len(fromLegacy))
	check(t, "widgets", fromAggregated["shop.example.com/v1 widgets"], "Widget true [delete deletecollection get list patch create update watch] [wd] [all] widget")

	version, err := aggregated.ServerVersion()
	must(t, err)
	check(t, "version", version.Major+"."+version.Minor, "1.36")
	preferred, err := aggregated.ServerPreferredResources()
	must(t, err)
	check(t, "preferred version of widgets", func() string {
		for _, list := range preferred {
			for _, r := range list.APIResources {
				if r.Name == "widgets" {
					return list.GroupVersion
				}
			}
		}
		return ""
	}(), "shop.example.com/v1")

	specs := openapi3.NewRoot(aggregated.OpenAPIV3())
	eventually(t, func() error {
		spec, err := specs.GVSpec(v1.GroupVersion)
		if err != nil {
			return err
		}
		if _, ok := spec.Components.Schemas["com.example.shop.v1.Widget"]; !ok {
			return fmt.Errorf("no schema of Widget in OpenAPI v3")
		}
		return nil
	})
}

func TestRESTMapperFindsNewCRDs(t *testing.T) {
	httpClient, err := rest.HTTPClientFor(config)
	must(t, err)
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	must(t, err)
	kind := schema.GroupKind{Group: "late.example.com", Kind: "Late"}
	_, err = mapper.RESTMapping(kind)
	check(t, "fails before the CRD is installed", err != nil, true)
	options := envtest.CRDInstallOptions{Paths: []string{"testdata/lates.yaml"}}
	_, err = envtest.InstallCRDs(config, options)
	must(t, err)
	mapping, err := mapper.RESTMapping(kind)
	must(t, err)
	check(t, "mapping after the CRD is installed", mapping.Resource.String()+" "+string(mapping.Scope.Name()), "late.example.com/v1, Resource=lates root")
	must(t, direct.Create(background, unstructuredObject("late.example.com/v1", "Late", "", "one")))
	must(t, envtest.UninstallCRDs(config, options))
}

func TestLeaderElectionHasOneLeader(t *testing.T) {
	namespace := namespaceFor(t)
	var mu sync.Mutex
	var changes []string
	record := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, fmt.Sprintf(format, args...))
	}
	var done sync.WaitGroup
	candidate := func(ctx context.Context, name string) {
		lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, "lead",
			resourcelock.ResourceLockConfig{Identity: name}, config, time.Second)
		must(t, err)
		done.Add(1)
		go func() {
			defer done.Done()
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond, ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { record("%s leads", name) },
					OnStoppedLeading: func() { record("%s stops", name) },
				},
			})
		}()
	}
	expectChanges := func(want string) {
		eventually(t, func() error {
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(changes) != want {
				return fmt.Errorf("changes %v, want %s", changes, want)
			}
			return nil
		})
	}
	first, stopFirst := context.WithCancel(background)
	second, stopSecond := context.WithCancel(background)
	defer stopSecond()
	candidate(first, "one")
	expectChanges("[one leads]")
	candidate(second, "two")
	time.Sleep(500 * time.Millisecond)
	expectChanges("[one leads]")
	stopFirst()
	expectChanges("[one leads one stops two leads]")
	lease := &coordinationv1.Lease{}
	must(t, direct.Get(background, client.ObjectKey{Namespace: namespace, Name: "lead"}, lease))
	check(t, "holder", *lease.Spec.HolderIdentity, "two")
	stopSecond()
	done.Wait()
}
