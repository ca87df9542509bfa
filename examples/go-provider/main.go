// A small infrastructure provider with controller-runtime. Its cloud is imaginary: instances exist as soon as they are requested.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	// controller-runtime declares --kubeconfig.
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(clusterv1.AddToScheme(scheme))
	scheme.AddKnownTypes(groupVersion, &AcmeCluster{}, &AcmeClusterList{}, &AcmeMachine{}, &AcmeMachineList{})
	metav1.AddToGroupVersion(scheme, groupVersion)

	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(err)
	ctx := ctrl.SetupSignalHandler()
	must((&ClusterReconciler{manager.GetClient()}).SetupWithManager(ctx, manager))
	must((&MachineReconciler{manager.GetClient()}).SetupWithManager(ctx, manager))
	must(manager.Add(ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		if manager.GetCache().WaitForCacheSync(ctx) {
			fmt.Println("Provider ready")
		}
		return nil
	})))
	must(manager.Start(ctx))
}

func must(err error) {
	if err != nil {
		klog.ErrorS(err, "The provider ends")
		os.Exit(1)
	}
}
