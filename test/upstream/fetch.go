package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// largest is several times the size of the largest definition.
const largest = 8 << 20

// Fetch brings the definitions that are not on this machine into a cache that all checkouts share. What cannot be had
// stops nothing else.
func Fetch(ctx context.Context, progress io.Writer, root string) error {
	s, err := open(root, locked)
	if err != nil {
		return err
	}
	return s.fetch(ctx, progress)
}

func (s *store) fetch(ctx context.Context, progress io.Writer) error {
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return fmt.Errorf("making the folder of CRDs: %w", err)
	}
	var errs []error
	for _, d := range s.definitions {
		if _, err := s.find(d); err == nil {
			continue
		}
		if err := s.fetchOne(ctx, d); err != nil {
			errs = append(errs, fmt.Errorf("fetching %s: %w", d.source, err))
			continue
		}
		// That nobody can read it is no reason to stop.
		_, _ = fmt.Fprintf(progress, "fetched %s of %s\n", d.name, d.release)
	}
	return errors.Join(errs...)
}

func (s *store) fetchOne(ctx context.Context, d definition) error {
	get := s.fromModule
	if strings.Contains(d.source, "://") {
		get = fromWeb
	}
	text, err := get(ctx, d.source)
	if err == nil {
		err = d.check(text)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.cached(d)), 0o755)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(s.cached(d), text, 0o644)
}

// fromModule reads module@version/path. The go command handles proxies, sums and its cache; run outside of the
// checkout, it makes no requirement of it.
func (s *store) fromModule(ctx context.Context, source string) ([]byte, error) {
	module, rest, _ := strings.Cut(source, "@")
	version, path, _ := strings.Cut(rest, "/")
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	command.Dir = s.cache
	out, err := command.Output()
	var downloaded struct{ Dir, Error string }
	if err := errors.Join(err, json.Unmarshal(out, &downloaded)); err != nil {
		return nil, fmt.Errorf("go mod download: %w: %s", err, downloaded.Error)
	}
	return os.ReadFile(filepath.Join(downloaded.Dir, filepath.FromSlash(path)))
}

func fromWeb(ctx context.Context, address string) (_ []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, largest))
}
