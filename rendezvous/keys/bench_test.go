package keys

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkAPI compares this API on an embedded store with etcd 3.4, for 32 clients at a time. It is unfair to ours,
// which shares a process with the clients and its store, where etcd has one of its own: on a busy machine that counts.
func BenchmarkAPI(b *testing.B) {
	servers := map[string]string{"etcd-3.4": etcd34(b), "ours": open(b, embedded(b), Options{Alone: true}).URL}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var n atomic.Int64
	for _, name := range []string{"etcd-3.4", "ours"} {
		base := servers[name] + "/v2/keys"
		for kind, ask := range map[string]func() (string, string, string){
			"get": func() (string, string, string) { return http.MethodGet, "/run/k", "" },
			"set": func() (string, string, string) {
				return http.MethodPut, fmt.Sprint("/run/", n.Add(1)%1000), "value=1&ttl=100"
			},
			"renew": func() (string, string, string) {
				return http.MethodPut, fmt.Sprint("/run/", n.Add(1)%100), "ttl=100&refresh=true&prevExist=true"
			},
			"lose": func() (string, string, string) { return http.MethodPut, "/run/k", "value=1&prevValue=2" },
		} {
			for i := range 100 {
				do(b, servers[name], http.MethodPut, fmt.Sprint("/v2/keys/run/", i), "value=x")
			}
			do(b, servers[name], http.MethodPut, "/v2/keys/run/k", "value=x")
			b.Run(kind+"/"+name, func(b *testing.B) {
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						method, target, form := ask()
						r, err := http.NewRequest(method, base+target, strings.NewReader(form))
						if err != nil {
							b.Error(err)
							return
						}
						r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
						a, err := client.Do(r)
						if err != nil {
							b.Error(err)
							return
						}
						io.Copy(io.Discard, a.Body) //nolint:errcheck // only the connection is wanted back
						a.Body.Close()
					}
				})
			})
		}
	}
}
