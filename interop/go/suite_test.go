// Package interop is a controller-runtime project whose tests start the programs kube-apiserver and etcd in the folder that
// KUBEBUILDER_ASSETS names: Capstan's programs, or the real ones. Every test must pass with both.
package interop

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	v1 "capstan.dev/interop/api/v1"
	"capstan.dev/interop/api/v1beta1"
	"capstan.dev/interop/controller"
)

var (
	environment *envtest.Environment
	config      *rest.Config
	// direct sends each request to the server; cached is the manager's client, which reads from its cache.
	direct, cached client.Client
	clientset      *kubernetes.Clientset
	scheme         = runtime.NewScheme()
	background     = context.Background()
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.Level(levelOf(os.Getenv("LOG_LEVEL")))))
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			return 1, err
		}
	}
	environment = newEnvironment()
	environment.Scheme = scheme
	environment.CRDDirectoryPaths = []string{"config/crd"}
	environment.ErrorIfCRDPathMissing = true
	environment.WebhookInstallOptions.Paths = []string{"config/webhook"}
	started := time.Now()
	if config, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("start the environment: %w", err)
	}
	fmt.Printf("environment started in %d ms\n", time.Since(started).Milliseconds())
	defer func() {
		if stopErr := environment.Stop(); stopErr != nil && err == nil {
			code, err = 1, fmt.Errorf("stop the environment: %w", stopErr)
		}
	}()

	if direct, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	if clientset, err = kubernetes.NewForConfig(config); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(background)
	done, err := startManager(ctx)
	if err != nil {
		cancel()
		return 1, err
	}
	code = m.Run()
	cancel()
	if err := <-done; err != nil {
		return 1, fmt.Errorf("manager: %w", err)
	}
	return code, nil
}

// startManager runs a manager with webhooks, leader election, a controller and event recorders. It waits until the manager is ready, and
// returns a channel that receives the manager's result when the manager ends.
func startManager(ctx context.Context) (<-chan error, error) {
	serving := environment.WebhookInstallOptions
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "widgets.shop.example.com",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: serving.LocalServingHost, Port: serving.LocalServingPort, CertDir: serving.LocalServingCertDir,
		}),
	})
	if err != nil {
		return nil, err
	}
	cached = mgr.GetClient()
	reconciler := &controller.WidgetReconciler{
		Client:   cached,
		Recorder: mgr.GetEventRecorderFor("widget-controller"), //nolint:staticcheck // the test needs events of core/v1
		Events:   mgr.GetEventRecorder("widget-controller"),
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	if err := controller.SetupWebhooks(mgr); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	select {
	case <-mgr.Elected():
	case err := <-done:
		return nil, fmt.Errorf("manager ended: %w", err)
	case <-time.After(30 * time.Second):
		return nil, fmt.Errorf("the manager was not elected")
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("caches did not sync")
	}
	// The manager does not wait for the webhook server, so the test does.
	started := mgr.GetWebhookServer().StartedChecker()
	for range 200 {
		if err = started(nil); err == nil {
			return done, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	return nil, fmt.Errorf("webhook server: %w", err)
}

// namespaceFor creates a namespace for one test and returns its name.
func namespaceFor(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, direct.Create(background, namespace))
	return namespace.Name
}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check fails the test if the values differ when printed.
func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// eventually calls attempt until it returns nil. After 20 seconds, the test fails with the last error.
func eventually(t *testing.T, attempt func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = attempt(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// checkError checks that a request failed with this reason and exactly this message.
func checkError(t *testing.T, err error, reason metav1.StatusReason, message string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %s: %s", reason, message)
		return
	}
	check(t, "reason", apierrors.ReasonForError(err), reason)
	check(t, "message", err.Error(), message)
}
