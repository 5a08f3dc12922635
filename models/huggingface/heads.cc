#include "models/huggingface/heads.h"

#include <fmt/format.h>

#include <algorithm>

namespace lambcast::huggingface {
namespace {

enum class Head {
  words,     // over the vocabulary
  masked,    // as `words`, without BERT's pooler and next-sentence head
  sequence,  // labels per sample
  token,     // labels per token, counted as one per sample
  pair,      // has two labels per token
  one,       // has one label per sample
  images,    // classes of images
  none,
};

// Classes by the ends of their names. Source: transformers 4.57, modeling_layers.py,
// models/bert/modeling_bert.py.
struct ClassEnd {
  std::string_view end;
  Head head;
};
constexpr ClassEnd class_ends[] = {{"ElectraForPreTraining", Head::one},
                                   {"ForCausalLM", Head::words},
                                   {"LMHeadModel", Head::words},
                                   {"DoubleHeadsModel", Head::words},
                                   {"ForPreTraining", Head::words},
                                   {"ForConditionalGeneration", Head::words},
                                   {"ForMaskedLM", Head::masked},
                                   {"ForSequenceClassification", Head::sequence},
                                   {"ForTokenClassification", Head::token},
                                   {"ForQuestionAnswering", Head::pair},
                                   {"ForMultipleChoice", Head::one},
                                   {"ForNextSentencePrediction", Head::sequence},
                                   {"ForImageClassification", Head::images},
                                   {"Model", Head::none}};

Head head_of(ConfigReader& config, const std::string& name) {
  // Heads of reward models are not modelled: they have one row, or a block before the head.
  const bool reward = name.find("Reward") != name.npos;
  for (const ClassEnd& known : class_ends)
    if (name.ends_with(known.end) && !reward) return known.head;
  std::vector<std::string> ends;
  for (const ClassEnd& known : class_ends) ends.push_back(fmt::format("...{}", known.end));
  config.refuse("architectures", fmt::format("the head of {}", name),
                fmt::format("{}", fmt::join(ends, ", ")));
}

std::int64_t labels_of(ConfigReader& config) {
  const hjson::Value* names = config.find("id2label");
  const auto count = config.optional_whole("num_labels", 0, 1'000'000);
  if (names != nullptr && !names->members.empty())
    return static_cast<std::int64_t>(names->members.size());
  return count.value_or(2);
}

}  // namespace

void describe_head(ConfigReader& config, std::string_view family, Description& model) {
  const hjson::Value* classes = config.find("architectures");
  if (classes == nullptr || classes->items.empty()) return;
  const std::string& name = classes->items.front().text;
  const Head head = head_of(config, name);
  const bool bert = family == "bert", images = family == "vit";
  const bool stacks = family == "t5" || family == "moe-llama";
  const bool words = head == Head::words || head == Head::masked;
  if (images ? head != Head::images : head == Head::images || (stacks && !words))
    config.refuse("architectures", fmt::format("the head of {}", name),
                  images ? "ForImageClassification" : "a class with a head over the vocabulary");
  const bool pooled = head == Head::words || head == Head::sequence || head == Head::one ||
                      (head == Head::none && !name.starts_with("DistilBert") &&
                       !name.starts_with("Electra") && !name.starts_with("Deberta"));
  if (bert && !pooled) model.set("pooler", false);
  if (words || images) return;
  model.set("labels", head == Head::none   ? std::int64_t{0}
                      : head == Head::one  ? 1
                      : head == Head::pair ? 2
                                           : labels_of(config));
}

}  // namespace lambcast::huggingface
