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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1 "capstan.dev/interop/api/v1"
)

var dynamicPaths = dynamic.LegacyAPIPathResolverFunc

func TestAggregatedAndLegacyDiscoveryAgree(t *testing.T) {
	log := &requestLog{}
	aggregated, err := discovery.NewDiscoveryClientForConfig(configFor(func(c *configCopy) { c.Wrap(log.wrap) }))
	must(t, err)
	old, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	old.UseLegacyDiscovery = true
	told := func(lists []*metav1.APIResourceList) map[string]string {
		all := map[string]string{}
		for _, list := range lists {
			for _, r := range list.APIResources {
				if strings.Contains(r.Name, "/") {
					r.SingularName = "" // Only aggregated discovery reports this name.
				}
				all[list.GroupVersion+" "+r.Name] = fmt.Sprintf("%s %t %v %v %v %s", r.Kind, r.Namespaced, r.Verbs, r.ShortNames, r.Categories, r.SingularName)
			}
		}
		return all
	}
	var one, other map[string]string
	rounds := 0
	// The kind of a CRD that was just deleted may disappear from one of the two forms of discovery earlier than from the other.
	eventually(t, func() error {
		rounds++
		groups, resources, err := aggregated.ServerGroupsAndResources()
		if err != nil {
			return err
		}
		oldGroups, oldResources, err := old.ServerGroupsAndResources()
		if err != nil {
			return err
		}
		one, other = told(resources), told(oldResources)
		if len(groups) != len(oldGroups) || len(one) != len(other) {
			return fmt.Errorf("aggregated: %d groups, %d resources; not: %d and %d", len(groups), len(one), len(oldGroups), len(other))
		}
		return nil
	})
	check(t, "requests of the aggregated form", log.count("GET /api"), 2*rounds)
	for resource, text := range one {
		check(t, resource, text, other[resource])
	}
	check(t, "resources", len(one), len(other))
	check(t, "widgets", one["shop.example.com/v1 widgets"], "Widget true [delete deletecollection get list patch create update watch] [wd] [all] widget")

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
	check(t, "before", err != nil, true)
	options := envtest.CRDInstallOptions{Paths: []string{"testdata/lates.yaml"}}
	_, err = envtest.InstallCRDs(config, options)
	must(t, err)
	mapping, err := mapper.RESTMapping(kind)
	must(t, err)
	check(t, "after", mapping.Resource.String()+" "+string(mapping.Scope.Name()), "late.example.com/v1, Resource=lates root")
	must(t, direct.Create(background, unstructuredObject("late.example.com/v1", "Late", "", "one")))
	must(t, envtest.UninstallCRDs(config, options))
}

func TestLeaderElectionHasOneLeader(t *testing.T) {
	namespace := namespaceFor(t)
	var mu sync.Mutex
	var story []string
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		story = append(story, fmt.Sprintf(format, args...))
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
					OnStartedLeading: func(context.Context) { say("%s leads", name) },
					OnStoppedLeading: func() { say("%s stops", name) },
				},
			})
		}()
	}
	heard := func(want string) {
		eventually(t, func() error {
			mu.Lock()
			defer mu.Unlock()
			if fmt.Sprint(story) != want {
				return fmt.Errorf("heard %v, want %s", story, want)
			}
			return nil
		})
	}
	first, stopFirst := context.WithCancel(background)
	second, stopSecond := context.WithCancel(background)
	defer stopSecond()
	candidate(first, "one")
	heard("[one leads]")
	candidate(second, "two")
	time.Sleep(500 * time.Millisecond)
	heard("[one leads]")
	stopFirst()
	heard("[one leads one stops two leads]")
	lease := &coordinationv1.Lease{}
	must(t, direct.Get(background, client.ObjectKey{Namespace: namespace, Name: "lead"}, lease))
	check(t, "holder", *lease.Spec.HolderIdentity, "two")
	stopSecond()
	done.Wait()
}
