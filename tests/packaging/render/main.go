// Renders the templates of a Helm chart with Go's own text/template, which is Helm's engine, and the few functions that our chart uses.
// Usage: go run main.go TEMPLATES < data.json; data has Values, Release and Chart. Documents go to standard output, separated by ---.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"
)

func main() {
	if err := render(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(folder string) error {
	decoder := json.NewDecoder(os.Stdin)
	decoder.UseNumber()
	var data map[string]interface{}
	if err := decoder.Decode(&data); err != nil {
		return err
	}
	all := template.New("chart").Option("missingkey=error")
	all.Funcs(template.FuncMap{
		"include": func(name string, scope interface{}) (string, error) {
			var out bytes.Buffer
			err := all.ExecuteTemplate(&out, name, scope)
			return out.String(), err
		},
		"toYaml":    func(value interface{}) string { return strings.TrimSuffix(toYaml("", value), "\n") },
		"nindent":   func(depth int, text string) string { return "\n" + indent(depth, text) },
		"hasPrefix": func(prefix, text string) bool { return strings.HasPrefix(text, prefix) },
		"fail":      func(message string) (string, error) { return "", errors.New(message) },
		"quote":     func(value interface{}) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"default": func(fallback, value interface{}) interface{} {
			if value == nil || value == "" {
				return fallback
			}
			return value
		},
	})
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := all.New(filepath.Base(file)).Parse(string(text)); err != nil {
			return err
		}
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") || name == "NOTES.txt" {
			continue
		}
		fmt.Println("---")
		if err := all.ExecuteTemplate(os.Stdout, name, data); err != nil {
			return err
		}
		fmt.Println()
	}
	return nil
}

// toYaml writes blocks, as Helm does; scalars are JSON, which is YAML.
func toYaml(lead string, value interface{}) string {
	var out strings.Builder
	switch found := value.(type) {
	case map[string]interface{}:
		names := make([]string, 0, len(found))
		for name := range found {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			out.WriteString(lead + scalar(name) + ":" + nested(lead, found[name]))
		}
	case []interface{}:
		for _, each := range found {
			block := toYaml(lead+"  ", each)
			out.WriteString(lead + "- " + strings.TrimPrefix(block, lead+"  "))
		}
	default:
		return lead + scalar(value) + "\n"
	}
	if out.Len() == 0 {
		return lead + scalar(value) + "\n"
	}
	return out.String()
}

func nested(lead string, value interface{}) string {
	block := toYaml(lead+"  ", value)
	switch found := value.(type) {
	case map[string]interface{}:
		if len(found) > 0 {
			return "\n" + block
		}
	case []interface{}:
		if len(found) > 0 {
			return "\n" + toYaml(lead, value)
		}
	}
	return " " + strings.TrimLeft(block, " ")
}

func scalar(value interface{}) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func indent(depth int, text string) string {
	space := strings.Repeat(" ", depth)
	return space + strings.ReplaceAll(text, "\n", "\n"+space)
}
