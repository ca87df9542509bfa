package interop

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	v1 "capstan.dev/interop/api/v1"
)

// configFor returns a copy of the administrator's configuration to which change has been applied.
func configFor(change func(*rest.Config)) *rest.Config {
	config := rest.CopyConfig(config)
	change(config)
	return config
}

// restClientFor returns a client for the group of Widget.
func restClientFor(t *testing.T, config *rest.Config) *rest.RESTClient {
	t.Helper()
	config = rest.CopyConfig(config)
	config.GroupVersion = &v1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	restClient, err := rest.RESTClientFor(config)
	must(t, err)
	return restClient
}

// warningList records the warnings in responses.
type warningList struct {
	sync.Mutex
	all []string
}

func (w *warningList) HandleWarningHeader(_ int, _ string, text string) {
	w.Lock()
	defer w.Unlock()
	w.all = append(w.all, text)
}

func (w *warningList) texts() []string {
	w.Lock()
	defer w.Unlock()
	return w.all
}

func unstructuredObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// requestLog records methods and URLs of the requests of a client.
type requestLog struct {
	sync.Mutex
	lines []string
}

func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		l.Lock()
		l.lines = append(l.lines, req.Method+" "+req.URL.RequestURI())
		l.Unlock()
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// count returns the number of requests whose lines contain all of the parts.
func (l *requestLog) count(parts ...string) int {
	l.Lock()
	defer l.Unlock()
	count := 0
	for _, line := range l.lines {
		matches := true
		for _, part := range parts {
			matches = matches && strings.Contains(line, part)
		}
		if matches {
			count++
		}
	}
	return count
}

// informerLists returns how often informers read all objects: by a LIST, or by a watch that begins with all objects. The LIST of an informer
// always has a query. In these tests, discovery and GETs of one object, which do not count, have none.
func (l *requestLog) informerLists() int {
	l.Lock()
	defer l.Unlock()
	count := 0
	for _, line := range l.lines {
		isWatch := strings.Contains(line, "watch=true")
		if strings.HasPrefix(line, "GET /api") && strings.Contains(line, "?") && (!isWatch || strings.Contains(line, "sendInitialEvents=true")) {
			count++
		}
	}
	return count
}

func (l *requestLog) reset() {
	l.Lock()
	defer l.Unlock()
	l.lines = nil
}

// names returns the names of the items, separated by commas.
func names[T any](items []T, name func(*T) string) string {
	var all []string
	for i := range items {
		all = append(all, name(&items[i]))
	}
	return strings.Join(all, ",")
}

func labelled(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

// numbered returns a name that sorts in the order of the numbers.
func numbered(i int) string { return fmt.Sprintf("n%03d", i) }
