// What crosses the boundary, as data: scripts/generate-native.ts makes TypeScript's types of it.
#pragma once

#include <string>
#include <vector>

#include "base/describe.h"

namespace weir {

struct FieldDescription {
  std::string name;
  std::string type;  // as TypeScript writes it
  std::string text;
  std::string unit;
  std::string range;
  bool optional = false;
};
void describe(auto& v, Of<FieldDescription> auto& f) {
  v.type("FieldDescription", "A field of a struct.");
  v("name", f.name, field::any(""));
  v("type", f.type, field::any("As TypeScript writes it."));
  v("text", f.text, field::any(""));
  v("unit", f.unit, field::any(""));
  v("range", f.range, field::any("In words; empty: whatever the type holds."));
  v("optional", f.optional, field::any("May be absent."));
}

// Where a record's field is, in its array.
struct PlaceDescription {
  std::string name;
  size_t place = 0;
};
void describe(auto& v, Of<PlaceDescription> auto& p) {
  v.type("PlaceDescription", "A field of a record.");
  v("name", p.name, field::any(""));
  v("place", p.place, field::any("Bytes from the record's start, or numbers."));
}

struct TypeDescription {
  std::string name;
  std::string text;
  std::vector<std::string> bases;
  std::vector<FieldDescription> fields;
};
void describe(auto& v, Of<TypeDescription> auto& t) {
  v.type("TypeDescription", "A struct.");
  v("name", t.name, field::any(""));
  v("text", t.text, field::any(""));
  v("bases", t.bases, field::any("Structs whose fields it has too."));
  v("fields", t.fields, field::any("Its own, and again those of its bases that are more here."));
}

struct RecordDescription {
  std::string name;
  size_t words = 0;
  std::vector<PlaceDescription> places;
};
void describe(auto& v, Of<RecordDescription> auto& r) {
  v.type("RecordDescription", "A record of a ring.");
  v("name", r.name, field::any(""));
  v("words", r.words, field::any("Of 8 bytes."));
  v("places", r.places, field::any("Of its fields."));
}

struct WordsDescription {
  std::string name;
  std::vector<std::string> words;
};
void describe(auto& v, Of<WordsDescription> auto& w) {
  v.type("WordsDescription", "An enumeration that records have by number.");
  v("name", w.name, field::any(""));
  v("words", w.words, field::any("By number."));
}

struct Description {
  std::vector<TypeDescription> configuration;  // from TypeScript
  std::vector<TypeDescription> reports;        // to it
  std::vector<RecordDescription> records;
  std::vector<WordsDescription> words;
};
void describe(auto& v, Of<Description> auto& d) {
  v.type("Description", "All that crosses the boundary.");
  v("configuration", d.configuration, field::any("From TypeScript."));
  v("reports", d.reports, field::any("To it."));
  v("records", d.records, field::any(""));
  v("words", d.words, field::any(""));
}

Description description();

}  // namespace weir
