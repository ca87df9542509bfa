// Calls the hook BeforeClusterCreate of an extension server with upstream's own runtime client, as its core does, and measures each call.
//
// One JSON object on each line of the input, one on each line of the output, which is {"error"} after a failure:
//
//	{"url", "caBundle", "handler", "request"}    the server, the handler and the request of all calls; the output is {} after one call
//	{"calls", "inFlight"}                        number of calls, and of concurrent calls; the output is {"seconds", "latencies"}, the
//	                                             total time and the time of each call in microseconds
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooks "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	runtimeclient "sigs.k8s.io/cluster-api/exp/runtime/client"
	internalclient "sigs.k8s.io/cluster-api/internal/runtime/client"
	"sigs.k8s.io/cluster-api/internal/runtime/registry"

	"github.com/go-logr/logr"
)

const extension = "bench"

type order struct {
	URL      string          `json:"url"`
	CABundle []byte          `json:"caBundle"`
	Handler  string          `json:"handler"`
	Request  json.RawMessage `json:"request"`

	Calls    int `json:"calls"`
	InFlight int `json:"inFlight"`
}

type answer struct {
	Seconds   float64 `json:"seconds,omitempty"`
	Latencies []int64 `json:"latencies,omitempty"`
	Error     string  `json:"error,omitempty"`
}

func main() {
	ctrl.SetLogger(logr.Discard())
	orders := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	answers := json.NewEncoder(os.Stdout)
	var to *caller
	for {
		var next order
		if orders.Decode(&next) != nil {
			return
		}
		result, err := answer{}, error(nil)
		if next.URL != "" {
			if to, err = newCaller(next); err == nil {
				err = to.call()
			}
		} else {
			result, err = to.callMany(next.Calls, next.InFlight)
		}
		if err != nil {
			result = answer{Error: err.Error()}
		}
		if err := answers.Encode(result); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// A registered handler of BeforeClusterCreate, and the request and the Cluster of its calls.
type caller struct {
	client  runtimeclient.Client
	handler string
	request *hooks.BeforeClusterCreateRequest
	cluster client.Object
}

func newCaller(to order) (*caller, error) {
	request := &hooks.BeforeClusterCreateRequest{}
	if err := json.Unmarshal(to.Request, request); err != nil {
		return nil, err
	}
	known := catalog.New()
	if err := hooks.AddToCatalog(known); err != nil {
		return nil, err
	}
	runtime, _, err := internalclient.New(context.Background(), internalclient.Options{Catalog: known, Registry: registry.New()})
	if err != nil {
		return nil, err
	}
	name := to.Handler + "." + extension
	err = runtime.WarmUp(&runtimev1.ExtensionConfigList{Items: []runtimev1.ExtensionConfig{{
		ObjectMeta: metav1.ObjectMeta{Name: extension},
		Spec: runtimev1.ExtensionConfigSpec{
			ClientConfig:      runtimev1.ClientConfig{URL: to.URL, CABundle: to.CABundle},
			NamespaceSelector: &metav1.LabelSelector{},
		},
		Status: runtimev1.ExtensionConfigStatus{Handlers: []runtimev1.ExtensionHandler{{
			Name:           name,
			RequestHook:    runtimev1.GroupVersionHook{APIVersion: hooks.GroupVersion.String(), Hook: "BeforeClusterCreate"},
			TimeoutSeconds: 10,
			FailurePolicy:  runtimev1.FailurePolicyFail,
		}}},
	}}})
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: request.Cluster.Namespace, Name: request.Cluster.Name}}
	return &caller{client: runtime, handler: name, request: request, cluster: cluster}, err
}

func (c *caller) call() error {
	response := &hooks.BeforeClusterCreateResponse{}
	return c.client.CallExtension(context.Background(), hooks.BeforeClusterCreate, c.cluster, c.handler, c.request, response)
}

func (c *caller) callMany(calls, inFlight int) (answer, error) {
	latencies := make([]int64, calls)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var working sync.WaitGroup
	began := time.Now()
	for range min(inFlight, calls) {
		working.Go(func() {
			for at := next.Add(1) - 1; at < int64(calls); at = next.Add(1) - 1 {
				start := time.Now()
				if err := c.call(); err != nil {
					failed.Store(&err)
					return
				}
				latencies[at] = time.Since(start).Microseconds()
			}
		})
	}
	working.Wait()
	if err := failed.Load(); err != nil {
		return answer{}, *err
	}
	return answer{Seconds: time.Since(began).Seconds(), Latencies: latencies}, nil
}
