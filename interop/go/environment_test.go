package interop

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// newEnvironment returns an environment with long timeouts for start and stop, for busy machines.
func newEnvironment() *envtest.Environment {
	return &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute}
}

func TestSeveralEnvironmentsAtOnce(t *testing.T) {
	all := []*envtest.Environment{newEnvironment(), newEnvironment()}
	var started sync.WaitGroup
	for i := range all {
		started.Add(1)
		go func() {
			defer started.Done()
			_, err := all[i].Start()
			if err != nil {
				t.Error(err)
			}
		}()
	}
	started.Wait()
	for i := range all {
		c, err := client.New(all[i].Config, client.Options{Scheme: scheme})
		must(t, err)
		must(t, c.Create(background, configMap("default", "same", map[string]string{"of": fmt.Sprint(i)})))
	}
	for i := range all {
		must(t, all[i].Stop())
	}
}

func TestStateIsStoredInTheFolderOfEtcd(t *testing.T) {
	folder := t.TempDir()
	var made *corev1.ConfigMap
	for run := range 2 {
		one := newEnvironment()
		one.ControlPlane.Etcd = &envtest.Etcd{DataDir: folder}
		access, err := one.Start()
		must(t, err)
		c, err := kubernetes.NewForConfig(access)
		must(t, err)
		maps := c.CoreV1().ConfigMaps("default")
		if run == 0 {
			made, err = maps.Create(background, configMap("default", "kept", nil), metav1.CreateOptions{})
			must(t, err)
		} else {
			found, err := maps.Get(background, "kept", metav1.GetOptions{})
			must(t, err)
			check(t, "uid", found.UID, made.UID)
			check(t, "resourceVersion", found.ResourceVersion, made.ResourceVersion)
			later, err := maps.Create(background, configMap("default", "later", nil), metav1.CreateOptions{})
			must(t, err)
			check(t, "the revision increases", version(t, later.ResourceVersion) > version(t, made.ResourceVersion), true)
		}
		must(t, one.Stop())
	}
}

// version parses a resourceVersion.
func version(t *testing.T, text string) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(text, 10, 64)
	must(t, err)
	return number
}

func TestUnknownFlagIsRejectedByName(t *testing.T) {
	var stderr bytes.Buffer
	one := newEnvironment()
	one.ControlPlane.GetAPIServer().Err = &stderr
	one.ControlPlane.GetAPIServer().Configure().Append("no-such-flag", "x")
	_, err := one.Start()
	check(t, "started", err == nil, false)
	check(t, "first line", strings.SplitN(stderr.String(), "\n", 2)[0], "Error: unknown flag: --no-such-flag")
}

func TestFlagDisablesAnAdmissionPlugin(t *testing.T) {
	one := newEnvironment()
	one.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "NamespaceLifecycle")
	access, err := one.Start()
	must(t, err)
	defer func() { must(t, one.Stop()) }()
	c, err := client.New(access, client.Options{Scheme: scheme})
	must(t, err)
	must(t, c.Create(background, configMap("missing-namespace", "one", nil)))
}

func TestKubectlOfTheEnvironmentRuns(t *testing.T) {
	admin, err := environment.ControlPlane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	must(t, err)
	kubectl, err := admin.Kubectl()
	must(t, err)
	if _, err := os.Stat(kubectl.Path); err != nil {
		t.Skip("no kubectl beside the other programs")
	}
	namespace := namespaceFor(t)
	must(t, direct.Create(background, widget(namespace, "shown", unmanaged)))
	out, stderr, err := kubectl.Run("get", "widgets", "-n", namespace, "--no-headers")
	if err != nil {
		t.Fatal(err, stderr)
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(out)
	must(t, err)
	check(t, "printed", strings.Join(strings.Fields(text.String()), " "), "shown 3 blue")
}

// The API server is killed and started again. No informer may miss an event. After the restart, there may be at most as many lists as
// informers; on Capstan, interop/envtest.ts requires that no informer lists again.
func TestInformersMissNothingAfterARestart(t *testing.T) {
	const informerCount, objectCount = 8, 20
	var stderr bytes.Buffer
	one := newEnvironment()
	one.ControlPlane.GetAPIServer().Err = &stderr
	access, err := one.Start()
	must(t, err)
	defer func() { must(t, one.Stop()) }()
	access.QPS, access.Burst = 1000, 1000
	writer, err := kubernetes.NewForConfig(access)
	must(t, err)

	log := &requestLog{}
	logged := rest.CopyConfig(access)
	logged.Wrap(log.wrap)
	reader, err := kubernetes.NewForConfig(logged)
	must(t, err)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	reported := &eventCounts{}
	var synced []cache.InformerSynced
	for range informerCount {
		factory := informers.NewSharedInformerFactory(reader, 0)
		informer := factory.Core().V1().ConfigMaps().Informer()
		registration, err := informer.AddEventHandler(reported.handler())
		must(t, err)
		factory.Start(ctx.Done())
		synced = append(synced, registration.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		t.Fatal("the informers did not sync")
	}
	listsBefore := log.informerLists()
	maps := writer.CoreV1().ConfigMaps("default")
	write := func(from string, count int) {
		for i := range count {
			_, err := maps.Create(background, configMap("default", from+numbered(i), nil), metav1.CreateOptions{})
			must(t, err)
		}
	}
	write("before-", objectCount)
	eventually(t, func() error { return reported.checkAdded(informerCount, objectCount, "before-") })
	log.reset()

	write("just-before-", objectCount) // Some informers possibly receive these objects only after the restart.
	kill(t, one)
	// The port of the killed kube-apiserver may not be free at once.
	eventually(t, func() error {
		if err := one.ControlPlane.APIServer.Start(); err != nil {
			return fmt.Errorf("%w: %s", err, stderr.String())
		}
		return nil
	})
	write("after-", objectCount)
	must(t, maps.Delete(background, "before-"+numbered(0), metav1.DeleteOptions{}))

	for _, part := range []string{"just-before-", "after-"} {
		eventually(t, func() error { return reported.checkAdded(informerCount, objectCount, part) })
	}
	eventually(t, func() error { return reported.checkDeleted(informerCount, "before-"+numbered(0)) })
	lists := log.informerLists()
	fmt.Printf("restart: %d informers, %d lists at their start, %d after the restart\n", informerCount, listsBefore, lists)
	if lists > informerCount {
		t.Errorf("%d informers listed %d times after one restart", informerCount, lists)
	}
}

// kill ends the API server with SIGKILL, and waits until its process has ended. envtest has no function that does so.
func kill(t *testing.T, environment *envtest.Environment) {
	t.Helper()
	flag := "--secure-port=" + environment.ControlPlane.APIServer.SecureServing.Port
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		if strings.Contains(string(line), flag+"\x00") {
			pid, err := strconv.Atoi(strings.Split(path, "/")[2])
			must(t, err)
			must(t, syscall.Kill(pid, syscall.SIGKILL))
			for ; ; time.Sleep(10 * time.Millisecond) {
				if line, err := os.ReadFile(path); err != nil || len(line) == 0 {
					return
				}
			}
		}
	}
	t.Fatal("there is no process of the API server")
}

// eventCounts counts the add events and the delete events of all informers, by the name of the object.
type eventCounts struct {
	sync.Mutex
	added, deleted map[string]int
}

func (c *eventCounts) handler() cache.ResourceEventHandler {
	count := func(into *map[string]int) func(any) {
		return func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			c.Lock()
			defer c.Unlock()
			if *into == nil {
				*into = map[string]int{}
			}
			(*into)[object.(*corev1.ConfigMap).Name]++
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: count(&c.added), DeleteFunc: count(&c.deleted)}
}

// checkAdded returns an error unless each object with the prefix has as many add events as there are informers.
func (c *eventCounts) checkAdded(informers, objects int, prefix string) error {
	c.Lock()
	defer c.Unlock()
	for i := range objects {
		if name := prefix + numbered(i); c.added[name] != informers {
			return fmt.Errorf("%s has %d add events, expected %d", name, c.added[name], informers)
		}
	}
	return nil
}

// checkDeleted returns an error unless the object has as many delete events as there are informers.
func (c *eventCounts) checkDeleted(informers int, name string) error {
	c.Lock()
	defer c.Unlock()
	if c.deleted[name] != informers {
		return fmt.Errorf("%s has %d delete events, expected %d", name, c.deleted[name], informers)
	}
	return nil
}
