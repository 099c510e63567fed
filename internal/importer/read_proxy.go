package importer

import (
	"path"
	"strings"

	"github.com/tegen-dev/tegen/internal/names"
)

// tlsDir is where the generators mount the certificates of an etcd.
const tlsDir = "/tegen/tls"

// proxied reads a program that 'tegen-rendezvous proxy' starts, and leaves what it starts. It returns the endpoint that
// the proxy is told of, if any. Where it is told more than a job can say, all stays as it was written.
func (d *draft) proxied(p *program, pod, c view) (endpoint setting) {
	words := p.words()
	if len(words) < 3 || path.Base(words[0]) != names.Rendezvous || words[1] != "proxy" {
		return endpoint
	}
	install := pod.at("initContainers").item("name", "install-launcher").at("image")
	n, user := 2, setting{}
	for ; n < len(words) && words[n] != "--" && strings.HasPrefix(words[n], "-"); n++ {
		name, value, inline := option(words[n])
		ours := map[string]string{"cacert": "ca.crt", "cert": "tls.crt", "key": "tls.key"}[name]
		switch {
		case inline && ours != "" && value == tlsDir+"/"+ours: // which the rendered etcd's certificates say
		case inline && name == "user":
			user = setting{value, p.from[n]}
		case inline && name == "endpoints" && !strings.ContainsAny(value, ",/"):
			endpoint = setting{value, p.from[n]}
		default:
			d.note(p.from[n], Translated, "%s of %s has no field in a job: the command stays as it is", words[n],
				words[0])
			return setting{}
		}
	}
	if n < len(words) && words[n] == "--" {
		n++
	}
	p.drop(0, n)
	if len(p.command) == 0 {
		p.command, p.args = p.args, nil
	}
	p.find()
	c.at("command").markTranslated()
	c.at("args").markTranslated()
	d.set("spec.rendezvous.proxy", true, c.at("command"))
	if d.set("spec.images.rendezvous", install.text(), install); !install.isSet() {
		d.note(c.at("command"), Translated, "%s is the image's own: spec.images.rendezvous brings it in its place",
			words[0])
	}
	if user.text != "" {
		d.put("spec.rendezvous.conf", "user", unescaped(user.text), user.from)
	}
	return endpoint
}

// outlived says whether torchrun's store is behind proxies.
func (d *draft) outlived() bool { return d.get("spec.rendezvous.proxy").isTrue() }
