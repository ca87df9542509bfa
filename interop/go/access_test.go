package interop

import (
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestRBACAppliesToUserAndImpersonatedUser(t *testing.T) {
	namespace := namespaceFor(t)
	user, err := environment.AddUser(envtest.User{Name: "bob", Groups: []string{"devs"}}, nil)
	must(t, err)
	bob, err := client.New(user.Config(), client.Options{Scheme: scheme})
	must(t, err)
	maps := &corev1.ConfigMapList{}
	checkError(t, bob.List(background, maps, client.InNamespace(namespace)), metav1.StatusReasonForbidden, fmt.Sprintf(
		`configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace %q`, namespace))

	must(t, direct.Create(background, &rbacv1.Role{ObjectMeta: labelled(namespace, "reader", nil), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
	}}))
	must(t, direct.Create(background, &rbacv1.RoleBinding{
		ObjectMeta: labelled(namespace, "readers", nil),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "devs"}},
	}))
	eventually(t, func() error { return bob.List(background, maps, client.InNamespace(namespace)) })
	checkError(t, bob.Create(background, configMap(namespace, "x", nil)), metav1.StatusReasonForbidden, fmt.Sprintf(
		`configmaps is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace %q`, namespace))

	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Resource: "configmaps"},
	}}
	must(t, bob.Create(background, review))
	check(t, "bob is allowed to list", review.Status.Allowed, true)

	robert, err := client.New(configFor(func(c *rest.Config) {
		c.Impersonate = rest.ImpersonationConfig{UserName: "robert", Groups: []string{"devs"}}
	}), client.Options{Scheme: scheme})
	must(t, err)
	must(t, robert.List(background, maps, client.InNamespace(namespace)))
	checkError(t, robert.Delete(background, configMap(namespace, "x", nil)), metav1.StatusReasonForbidden, fmt.Sprintf(
		`configmaps "x" is forbidden: User "robert" cannot delete resource "configmaps" in API group "" in the namespace %q`, namespace))

	contents, err := user.KubeConfig()
	must(t, err)
	check(t, "the kubeconfig has contents", len(contents) > 0, true)
}

func TestServiceAccountTokensAuthenticateUntilDeletion(t *testing.T) {
	namespace := namespaceFor(t)
	must(t, direct.Create(background, &corev1.ServiceAccount{ObjectMeta: labelled(namespace, "robot", nil)}))
	token, err := clientset.CoreV1().ServiceAccounts(namespace).CreateToken(background, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	withToken := rest.AnonymousClientConfig(config)
	withToken.BearerToken = token.Status.Token
	robot, err := kubernetes.NewForConfig(withToken)
	must(t, err)
	identity, err := robot.AuthenticationV1().SelfSubjectReviews().Create(background, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	must(t, err)
	check(t, "user", identity.Status.UserInfo.Username, "system:serviceaccount:"+namespace+":robot")
	review, err := clientset.AuthenticationV1().TokenReviews().Create(background, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}, metav1.CreateOptions{})
	must(t, err)
	check(t, "groups", review.Status.User.Groups, []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"})

	must(t, direct.Delete(background, &corev1.ServiceAccount{ObjectMeta: labelled(namespace, "robot", nil)}))
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		_, err = robot.AuthenticationV1().SelfSubjectReviews().Create(background, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if apierrors.IsUnauthorized(err) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the token of a deleted ServiceAccount is not rejected: %v", err)
		}
	}
}

func TestAnonymousUserReadsReadinessButNotNamespaces(t *testing.T) {
	anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(config))
	must(t, err)
	text, err := anonymous.RESTClient().Get().AbsPath("/readyz").DoRaw(background)
	must(t, err)
	check(t, "ready", string(text), "ok")
	_, err = anonymous.CoreV1().Namespaces().List(background, metav1.ListOptions{})
	checkError(t, err, metav1.StatusReasonForbidden, `namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" in API group "" at the cluster scope`)
}
