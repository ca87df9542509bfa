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

// patient returns an environment with long timeouts for start and stop, for busy machines.
func patient() *envtest.Environment {
	return &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: time.Minute}
}

func TestSeveralEnvironmentsAtOnce(t *testing.T) {
	all := []*envtest.Environment{patient(), patient()}
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
	for round := range 2 {
		one := patient()
		one.ControlPlane.Etcd = &envtest.Etcd{DataDir: folder}
		access, err := one.Start()
		must(t, err)
		c, err := kubernetes.NewForConfig(access)
		must(t, err)
		maps := c.CoreV1().ConfigMaps("default")
		if round == 0 {
			made, err = maps.Create(background, configMap("default", "kept", nil), metav1.CreateOptions{})
			must(t, err)
		} else {
			found, err := maps.Get(background, "kept", metav1.GetOptions{})
			must(t, err)
			check(t, "uid", found.UID, made.UID)
			check(t, "resourceVersion", found.ResourceVersion, made.ResourceVersion)
			later, err := maps.Create(background, configMap("default", "later", nil), metav1.CreateOptions{})
			must(t, err)
			check(t, "revisions go on", version(t, later.ResourceVersion) > version(t, made.ResourceVersion), true)
		}
		must(t, one.Stop())
	}
}

func version(t *testing.T, text string) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(text, 10, 64)
	must(t, err)
	return number
}

func TestUnknownFlagIsRejectedByName(t *testing.T) {
	var said bytes.Buffer
	one := patient()
	one.ControlPlane.GetAPIServer().Err = &said
	one.ControlPlane.GetAPIServer().Configure().Append("no-such-flag", "x")
	_, err := one.Start()
	check(t, "started", err == nil, false)
	check(t, "first line", strings.SplitN(said.String(), "\n", 2)[0], "Error: unknown flag: --no-such-flag")
}

func TestAdmissionPluginIsDisabled(t *testing.T) {
	one := patient()
	one.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "NamespaceLifecycle")
	access, err := one.Start()
	must(t, err)
	defer func() { must(t, one.Stop()) }()
	c, err := client.New(access, client.Options{Scheme: scheme})
	must(t, err)
	must(t, c.Create(background, configMap("nowhere", "one", nil)))
}

func TestKubectlOfTheEnvironmentRuns(t *testing.T) {
	kubectl, err := environment.ControlPlane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	must(t, err)
	control, err := kubectl.Kubectl()
	must(t, err)
	if _, err := os.Stat(control.Path); err != nil {
		t.Skip("no kubectl beside the other programs")
	}
	namespace := namespaceFor(t)
	must(t, direct.Create(background, widget(namespace, "shown", unmanaged)))
	out, complaints, err := control.Run("get", "widgets", "-n", namespace, "--no-headers")
	if err != nil {
		t.Fatal(err, complaints)
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(out)
	must(t, err)
	check(t, "printed", strings.Join(strings.Fields(text.String()), " "), "shown 3 blue")
}

// The API server is killed and started again. No informer may miss an event. Each may list once more; on Capstan, interop/envtest.ts
// requires that no informer lists again.
func TestARestartLosesNothing(t *testing.T) {
	const kinds, objects = 8, 20
	var said bytes.Buffer
	one := patient()
	one.ControlPlane.GetAPIServer().Err = &said
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
	seen := &sightings{}
	var synced []cache.InformerSynced
	for range kinds {
		factory := informers.NewSharedInformerFactory(reader, 0)
		informer := factory.Core().V1().ConfigMaps().Informer()
		registration, err := informer.AddEventHandler(seen.handler())
		must(t, err)
		factory.Start(ctx.Done())
		synced = append(synced, registration.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		t.Fatal("no sync")
	}
	listsBefore := log.lists()
	maps := writer.CoreV1().ConfigMaps("default")
	write := func(from string, count int) {
		for i := range count {
			_, err := maps.Create(background, configMap("default", from+numbered(i), nil), metav1.CreateOptions{})
			must(t, err)
		}
	}
	write("before-", objects)
	eventually(t, func() error { return seen.all(kinds, objects, "before-") })
	log.reset()

	write("just-", objects) // Informers may not have received these objects yet.
	kill(t, one)
	// The port of the killed kube-apiserver may not be free at once.
	eventually(t, func() error {
		if err := one.ControlPlane.APIServer.Start(); err != nil {
			return fmt.Errorf("%w: %s", err, said.String())
		}
		return nil
	})
	write("after-", objects)
	must(t, maps.Delete(background, "before-"+numbered(0), metav1.DeleteOptions{}))

	for _, part := range []string{"just-", "after-"} {
		eventually(t, func() error { return seen.all(kinds, objects, part) })
	}
	eventually(t, func() error { return seen.deleted(kinds, "before-"+numbered(0)) })
	lists := log.lists()
	fmt.Printf("restart: %d informers, %d lists at their start, %d after the restart\n", kinds, listsBefore, lists)
	if lists > kinds {
		t.Errorf("%d informers listed %d times after one restart", kinds, lists)
	}
}

// kill ends the API server with SIGKILL, which envtest has no function for.
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
	t.Fatal("no process of the API server")
}

// sightings counts by name how many informers have reported an object as added and as deleted.
type sightings struct {
	sync.Mutex
	added, gone map[string]int
}

func (s *sightings) handler() cache.ResourceEventHandler {
	note := func(into *map[string]int) func(any) {
		return func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			s.Lock()
			defer s.Unlock()
			if *into == nil {
				*into = map[string]int{}
			}
			(*into)[object.(*corev1.ConfigMap).Name]++
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: note(&s.added), DeleteFunc: note(&s.gone)}
}

func (s *sightings) all(informers, objects int, prefix string) error {
	s.Lock()
	defer s.Unlock()
	for i := range objects {
		if name := prefix + numbered(i); s.added[name] != informers {
			return fmt.Errorf("%s was reported to %d of %d informers", name, s.added[name], informers)
		}
	}
	return nil
}

func (s *sightings) deleted(informers int, name string) error {
	s.Lock()
	defer s.Unlock()
	if s.gone[name] != informers {
		return fmt.Errorf("the end of %s was reported to %d of %d informers", name, s.gone[name], informers)
	}
	return nil
}
