package blob

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Limits of a bucket's location, in bytes. An S3 key has at most 1,024; a blob's
// own name takes less than 100 of them.
const (
	maxBucket = 255
	maxPrefix = 900
	maxRegion = 64
	maxCreds  = 64
)

// DefaultRegion signs the requests to a bucket whose location names no region.
const DefaultRegion = "us-east-1"

// DefaultCreds names the credentials of a bucket whose location names none.
const DefaultCreds = "AWS"

// S3Spec describes a bucket. Every field but Prefix is set, to the default where
// the location doesn't say.
type S3Spec struct {
	Bucket string
	// Prefix comes before every blob's name, with a slash between. It has no
	// slash at either end and may be empty.
	Prefix string
	// Endpoint is http(s)://HOST[:PORT], without a slash at the end.
	Endpoint string
	Region   string
	// Creds is upper-case: NAME_ACCESS_KEY_ID and the others hold the
	// credentials in the environment.
	Creds string
	// PathStyle asks for ENDPOINT/BUCKET/... rather than BUCKET.HOST/...
	PathStyle bool
}

// parseS3 parses what follows s3://. It shows no value of an option in its
// errors, and no name: somebody may have put a key there.
func parseS3(text string) (S3Spec, error) {
	where, query, asked := strings.Cut(text, "?")
	bucket, prefix, slash := strings.Cut(where, "/")
	spec := S3Spec{Bucket: bucket, Prefix: strings.TrimSuffix(prefix, "/"), Region: DefaultRegion, Creds: DefaultCreds}
	if strings.ContainsAny(bucket, "@:") {
		return S3Spec{}, errors.New("credentials never go in a location: put them in the environment (see creds=) and give s3://BUCKET/PREFIX")
	}
	if slash && prefix != "" {
		if err := checkPrefix(spec.Prefix); err != nil {
			return S3Spec{}, err
		}
	}
	if asked {
		if err := spec.setOptions(query); err != nil {
			return S3Spec{}, err
		}
	}
	if spec.Endpoint == "" {
		spec.Endpoint = "https://s3." + spec.Region + ".amazonaws.com"
	}
	return spec, spec.checkBucket()
}

func (s *S3Spec) setOptions(query string) error {
	seen := map[string]bool{}
	for option := range strings.SplitSeq(query, "&") {
		name, value, ok := strings.Cut(option, "=")
		if option == "" {
			return errors.New("an option is empty: there is a '?' or '&' too many")
		}
		if seen[name] {
			return fmt.Errorf("option %s is given twice", name)
		}
		var err error
		switch name {
		case "endpoint":
			s.Endpoint, err = parseEndpoint(value)
			s.PathStyle = s.PathStyle || !seen["path_style"]
		case "region":
			s.Region, err = parseWord(name, value, maxRegion, "-_")
		case "creds":
			s.Creds, err = parseWord(name, value, maxCreds, "_")
			s.Creds = strings.ToUpper(s.Creds)
		case "path_style":
			if s.PathStyle, err = strconv.ParseBool(value); err != nil {
				err = errors.New("option path_style must be true or false")
			}
		default:
			err = fmt.Errorf("unknown option%s; there are endpoint, region, creds and path_style", showOption(name, ok))
		}
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("option %s has no value", name)
		}
		seen[name] = true
	}
	return nil
}

// showOption returns the name of an unknown option for an error, unless it could
// be the rest of a secret with an '&' in it.
func showOption(name string, hasValue bool) string {
	const longest = 24
	if !hasValue || name == "" || len(name) > longest || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_-") != "" {
		return ""
	}
	return " " + name
}

// checkBucket checks the bucket's name against where it will be put: a host name
// takes less than a path does.
func (s *S3Spec) checkBucket() error {
	if s.Bucket == "" {
		return errors.New("the bucket is missing: s3://BUCKET[/PREFIX]")
	}
	if len(s.Bucket) > maxBucket || s.Bucket == "." || s.Bucket == ".." {
		return errors.New("it has no bucket of that name")
	}
	https := strings.HasPrefix(s.Endpoint, "https:")
	for i := range len(s.Bucket) {
		c := s.Bucket[i]
		lower := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		switch {
		case !isAlphanumeric(c) && c != '-' && c != '_' && c != '.':
			return errors.New("a bucket's name has letters, digits, '-', '_' and '.'")
		case s.PathStyle || lower:
		case c == '.' && https:
			return errors.New("a bucket with a dot in its name needs path_style=true over HTTPS")
		case c != '.' && c != '-':
			return errors.New("a bucket with a capital letter or '_' in its name needs path_style=true")
		}
	}
	if !s.PathStyle {
		for label := range strings.SplitSeq(s.Bucket, ".") {
			if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
				return errors.New("the bucket's name can't be part of a host name; give path_style=true if there is such a bucket")
			}
		}
	}
	return nil
}

func checkPrefix(prefix string) error {
	if len(prefix) > maxPrefix {
		return fmt.Errorf("the prefix is longer than %d bytes", maxPrefix)
	}
	if strings.ContainsAny(prefix, `%#;\`) {
		return errors.New(`the prefix must not have '%', '#', ';' or '\'; it is taken as typed`)
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "" || part == "." || part == ".." {
			return errors.New("the prefix must not have empty parts, '.' or '..' between its slashes")
		}
	}
	return nil
}

// parseWord checks an option's value that is a plain word.
func parseWord(option, value string, longest int, also string) (string, error) {
	valid := value != "" && len(value) <= longest
	for i := range len(value) {
		valid = valid && (isAlphanumeric(value[i]) || strings.IndexByte(also, value[i]) >= 0)
	}
	if !valid {
		return "", fmt.Errorf("option %s takes letters, digits and any of %q, at most %d", option, also, longest)
	}
	return value, nil
}

// parseEndpoint accepts http(s)://HOST[:PORT] and returns it with the scheme and
// host in lower case.
func parseEndpoint(value string) (string, error) {
	refused := errors.New("option endpoint must be http(s)://HOST[:PORT], without a path, a user or a password")
	u, err := url.Parse(value)
	if err != nil {
		// The error would repeat the value.
		return "", refused
	}
	plain := url.URL{Scheme: u.Scheme, Host: u.Host}
	host, port := u.Hostname(), u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Opaque != "", u.User != nil,
		strings.ContainsAny(value, "?#%@"), u.Path != "" && u.Path != "/":
		return "", refused
	case !isHost(host), strings.HasSuffix(u.Host, ":"):
		return "", refused
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", refused
		}
	}
	return strings.ToLower(plain.String()), nil
}

func isHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Zone() == ""
	}
	if len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := range len(label) {
			if !isAlphanumeric(label[i]) && label[i] != '-' && label[i] != '_' {
				return false
			}
		}
	}
	return true
}

// place returns a text that is the same for two specs of the same place. AWS's
// buckets have one name space, whatever the region.
func (s S3Spec) place() string {
	endpoint := s.Endpoint
	for _, port := range []struct{ scheme, port string }{{"https://", ":443"}, {"http://", ":80"}} {
		if strings.HasPrefix(endpoint, port.scheme) {
			endpoint = strings.TrimSuffix(endpoint, port.port)
		}
	}
	if strings.HasPrefix(endpoint, "https://s3.") && strings.HasSuffix(endpoint, ".amazonaws.com") {
		endpoint = "aws"
	}
	return endpoint + " " + s.Bucket + " " + s.Prefix
}
